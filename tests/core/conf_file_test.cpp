// SPDX-License-Identifier: Apache-2.0
#include "core/conf_file.h"

#include <catch2/catch.hpp>

using namespace shoal;
using Values = std::map<std::string, std::string>;

TEST_CASE("conf file: lines of KEY=VALUE, blanks around either, comments, empty lines; the first of two counts") {
  const ConfFile file = parse_conf_file(
      "# comment\n\nNCCL_DEBUG=INFO\r\n  SHOAL_ALGO = all_reduce:ring \n\t# "
      "another\nNCCL_DEBUG=TRACE\nNCCL_HOSTID=a=b#c\nNCCL_IB_HCA=",
      "f");
  CHECK(file.complaints.empty());
  CHECK(file.values ==
        Values{{"NCCL_DEBUG", "INFO"}, {"NCCL_HOSTID", "a=b#c"}, {"NCCL_IB_HCA", ""}, {"SHOAL_ALGO", "all_reduce:ring"}});
}

TEST_CASE("conf file: variables of others pass without a word") {
  const ConfFile file = parse_conf_file("LD_PRELOAD=x\nnccl_debug=INFO\n", "f");
  CHECK(file.values.empty());
  CHECK(file.complaints.empty());
}

TEST_CASE("conf file: a malformed line is named with file and line, and the others count") {
  const ConfFile file = parse_conf_file(std::string("NCCL_DEBUG\n=x\nNCCL DEBUG=1\nNCCL_A=1\nNCCL_B=\0\n", 45), "/etc/x.conf");
  CHECK(file.values == Values{{"NCCL_A", "1"}});
  REQUIRE(file.complaints.size() == 4);
  CHECK(file.complaints[0] == "/etc/x.conf:1: 'NCCL_DEBUG' is not KEY=VALUE; the line is left out");
  CHECK_THAT(file.complaints[1], Catch::StartsWith("/etc/x.conf:2: "));
  CHECK_THAT(file.complaints[2], Catch::StartsWith("/etc/x.conf:3: "));
  CHECK_THAT(file.complaints[3], Catch::StartsWith("/etc/x.conf:5: "));
}
