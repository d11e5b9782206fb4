// SPDX-License-Identifier: Apache-2.0
#include "core/environment.h"
#include "core/net_choice.h"
#include "core/topo_options.h"

#include <catch2/catch.hpp>
#include <map>

using namespace shoal;
using Variables = std::map<std::string, std::string>;

namespace {

Result<Environment> parse(const Variables& variables) {
  return parse_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Environment good(const Variables& variables) {
  const Result<Environment> parsed = parse(variables);
  INFO(parsed.status().text());
  REQUIRE(parsed.is_ok());
  return *parsed;
}

struct Wrong {
  const char* variable;
  const char* value;
  const char* allowed;  // part of the text
};

}  // namespace

TEST_CASE("environment: nothing set gives the defaults") {
  const Environment e = good({});
  CHECK(e.debug.empty());
  CHECK(e.debug_file.empty());
  CHECK(e.debug_subsys == "INIT,BOOTSTRAP,ENV");
  CHECK(e.debug_timestamp_format == "[%F %T] ");
  CHECK(e.debug_timestamp_levels == "WARN");
  CHECK(e.socket_retry_count == -1);
  CHECK(e.socket_retry_sleep_ms == -1);
  CHECK(e.socket_ifname.empty());
  CHECK(e.socket_family.empty());
  CHECK(e.comm_id.empty());
  CHECK(e.comm_blocking == -1);
  CHECK(e.host_id.empty());
  CHECK(e.secret.empty());
  CHECK_FALSE(e.shm_disable);
  CHECK_FALSE(e.loopback_disable);
  CHECK_FALSE(e.mapped_disable);
  CHECK(e.pull_bytes == -1);
  CHECK(e.shim.empty());
  CHECK(e.calibration.empty());
  CHECK(e.algo.empty());
  CHECK(e.timeout_ms == 1'800'000);
  CHECK(e.slice_bytes == 0);
  CHECK(e.credits == 0);
  CHECK(e.in_flight == 0);
  CHECK(e.spin_us == -1);
}

TEST_CASE("environment: every variable lands in its member") {
  const Environment e = good({{"NCCL_DEBUG", "info"},
                              {"NCCL_DEBUG_FILE", "logs/log.%h.%p"},
                              {"NCCL_SOCKET_IFNAME", "^=docker0,lo"},
                              {"NCCL_SOCKET_FAMILY", "AF_INET6"},
                              {"NCCL_SOCKET_RETRY_CNT", "34"},
                              {"NCCL_SOCKET_RETRY_SLEEP_MSEC", "0"},
                              {"NCCL_DEBUG_SUBSYS", "^NET"},
                              {"NCCL_DEBUG_TIMESTAMP_FORMAT", "%T "},
                              {"NCCL_DEBUG_TIMESTAMP_LEVELS", "ALL"},
                              {"NCCL_COMM_ID", "[fe80::1%eth0]:4000"},
                              {"NCCL_HOSTID", "pretended host"},
                              {"SHOAL_SECRET", " any text "},
                              {"NCCL_SHM_DISABLE", "1"},
                              {"SHOAL_LOOPBACK_DISABLE", "0x1"},
                              {"SHOAL_SHIM", "latency=1ms,bandwidth=1Gbit"},
                              {"SHOAL_CALIBRATION", "/tmp/here.txt"},
                              {"SHOAL_ALGO", "Recursive_Doubling"},
                              {"SHOAL_TIMEOUT_MS", "0"},
                              {"SHOAL_SLICE_BYTES", "64K"},
                              {"SHOAL_CREDITS", "64"},
                              {"SHOAL_IN_FLIGHT", "1"},
                              {"SHOAL_SPIN_US", "-1"}});
  CHECK(e.debug == "INFO");
  CHECK(e.debug_file == "logs/log.%h.%p");
  CHECK(e.socket_ifname == "^=docker0,lo");
  CHECK(e.socket_family == "AF_INET6");
  CHECK(e.socket_retry_count == 34);
  CHECK(e.socket_retry_sleep_ms == 0);
  CHECK(e.debug_subsys == "^NET");
  CHECK(e.debug_timestamp_format == "%T ");
  CHECK(e.debug_timestamp_levels == "ALL");
  CHECK(e.comm_id == "[fe80::1%eth0]:4000");
  CHECK(e.host_id == "pretended host");
  CHECK(e.secret == " any text ");
  CHECK(e.shm_disable);
  CHECK(e.loopback_disable);
  CHECK(e.shim == "latency=1ms,bandwidth=1Gbit");
  CHECK(e.calibration == "/tmp/here.txt");
  CHECK(e.algo == "Recursive_Doubling");
  CHECK(e.timeout_ms == 0);
  CHECK(e.slice_bytes == 65536);
  CHECK(e.credits == 64);
  CHECK(e.in_flight == 1);
  CHECK(e.spin_us == -1);
}

TEST_CASE("environment: what names files of topologies is kept with the variable that was set") {
  const Variables set = {{"SHOAL_TOPO_FILE", "a.xml"},
                         {"NCCL_TOPO_FILE", "b.xml"},
                         {"NCCL_TOPO_DUMP_FILE", "c.xml"},
                         {"NCCL_TOPO_DUMP_FILE_RANK", "3"}};
  const auto getter = [&](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  };
  const Result<TopoOptions> topo = parse_topo_options(getter);
  REQUIRE(topo.is_ok());
  CHECK(topo->file == "a.xml");
  CHECK(topo->file_variable == "SHOAL_TOPO_FILE");
  CHECK(topo->dump_file == "c.xml");
  CHECK(topo->dump_variable == "NCCL_TOPO_DUMP_FILE");
  CHECK(topo->dump_rank == 3);
  CHECK_FALSE(parse({{"NCCL_TOPO_DUMP_FILE_RANK", "first"}}).is_ok());
  CHECK(variables_without_effect({"NCCL_TOPO_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_TOPO_DUMP_FILE_RANK"}).empty());
}

TEST_CASE("environment: SHOAL_X wins over NCCL_X, whose value is then not even looked at") {
  CHECK(good({{"SHOAL_DEBUG", "WARN"}, {"NCCL_DEBUG", "nonsense"}}).debug == "WARN");
  CHECK(good({{"NCCL_COMM_BLOCKING", "0"}}).comm_blocking == 0);
  CHECK(good({{"SHOAL_SHM_DISABLE", "0"}, {"NCCL_SHM_DISABLE", "1"}}).shm_disable == false);
  CHECK(good({{"SHOAL_ALGO", "recursive_doubling"}, {"NCCL_ALGO", "Ring"}}).algo == "recursive_doubling");
  CHECK_FALSE(parse({{"SHOAL_DEBUG", "nonsense"}, {"NCCL_DEBUG", "WARN"}}).is_ok());
}

TEST_CASE("environment: an empty value is an unset one") {
  const Environment e =
      good({{"NCCL_DEBUG", ""}, {"SHOAL_CREDITS", ""}, {"NCCL_SOCKET_IFNAME", ""}, {"NCCL_COMM_ID", ""}, {"NCCL_ALGO", ""}});
  CHECK(e.debug.empty());
  CHECK(e.credits == 0);
  CHECK(good({{"SHOAL_DEBUG", ""}, {"NCCL_DEBUG", "TRACE"}}).debug == "TRACE");
}

TEST_CASE("environment: debug levels in any case, ABORT as INFO") {
  CHECK(good({{"NCCL_DEBUG", "Version"}}).debug == "VERSION");
  CHECK(good({{"NCCL_DEBUG", "tRaCe"}}).debug == "TRACE");
  CHECK(good({{"NCCL_DEBUG", "ABORT"}}).debug == "INFO");
}

TEST_CASE("environment: integers in base 16, 8 and 10, byte sizes with suffixes") {
  CHECK(good({{"SHOAL_TIMEOUT_MS", "0x10"}}).timeout_ms == 16);
  CHECK(good({{"SHOAL_TIMEOUT_MS", "0XfF"}}).timeout_ms == 255);
  CHECK(good({{"SHOAL_TIMEOUT_MS", "010"}}).timeout_ms == 8);
  CHECK(good({{"SHOAL_TIMEOUT_MS", "10"}}).timeout_ms == 10);
  CHECK(good({{"SHOAL_TIMEOUT_MS", "1000000000000"}}).timeout_ms == 1'000'000'000'000);
  CHECK(good({{"SHOAL_SLICE_BYTES", "64"}}).slice_bytes == 64);
  CHECK(good({{"SHOAL_SLICE_BYTES", "1k"}}).slice_bytes == 1024);
  CHECK(good({{"SHOAL_SLICE_BYTES", "16M"}}).slice_bytes == 16 << 20);
  CHECK(good({{"SHOAL_SLICE_BYTES", "0x10m"}}).slice_bytes == 16 << 20);
  CHECK(good({{"SHOAL_SPIN_US", "0"}}).spin_us == 0);
}

TEST_CASE("environment: NCCL_NET asks for UCX, in any case and by either prefix, and takes every other name") {
  const auto net = [](std::map<std::string, std::string> set) {
    return parse_net([set](const char* name) {
      const auto found = set.find(name);
      return found == set.end() ? std::nullopt : std::optional<std::string>(found->second);
    });
  };
  CHECK(net({}) == Net::any);
  CHECK(net({{"NCCL_NET", ""}}) == Net::any);
  for (const char* name : {"UCX", "ucx", "Ucx"}) CHECK(net({{"NCCL_NET", name}}) == Net::ucx);
  for (const char* name : {"Socket", "IB", "AWS Libfabric", "UCX2", " UCX"}) CHECK(net({{"NCCL_NET", name}}) == Net::any);
  CHECK(net({{"SHOAL_NET", "UCX"}, {"NCCL_NET", "Socket"}}) == Net::ucx);
  CHECK(good({{"NCCL_NET", "AWS Libfabric"}}).debug.empty());
}

TEST_CASE("environment: a malformed value names variable, value and what is allowed") {
  const Wrong wrong = GENERATE(
      Wrong{"NCCL_DEBUG", "LOUD", "VERSION, WARN, INFO or TRACE"}, Wrong{"NCCL_SOCKET_FAMILY", "AF_UNIX", "AF_INET or AF_INET6"},
      Wrong{"NCCL_SOCKET_IFNAME", "=^lo", "[^][=]name"}, Wrong{"NCCL_SOCKET_IFNAME", "^", "[^][=]name"},
      Wrong{"NCCL_COMM_ID", "localhost", "host:port"}, Wrong{"NCCL_COMM_ID", "1.2.3.4:0", "port 1 to 65535"},
      Wrong{"NCCL_COMM_ID", "::1:4000", "[ip6]:port"}, Wrong{"NCCL_SHM_DISABLE", "2", "0 or 1"},
      Wrong{"NCCL_COMM_BLOCKING", "2", "0 to 1"}, Wrong{"NCCL_SHM_DISABLE", "yes", "0 or 1"},
      Wrong{"SHOAL_LOOPBACK_DISABLE", "-1", "0 or 1"}, Wrong{"NCCL_SOCKET_RETRY_CNT", "-2", "0 to 1000000, or -1"},
      Wrong{"NCCL_SOCKET_RETRY_SLEEP_MSEC", "1s", "0 to 100000, or -1"},
      Wrong{"SHOAL_SHIM", "latency=5", "'latency=5': allowed is a number with ns, us, ms or s behind it"},
      Wrong{"SHOAL_SHIM", "slow", "latency=TIME, bandwidth=RATE, jitter=TIME or seed=NUMBER"},
      Wrong{"SHOAL_NUMERICS", "precise", "fast, ordered or exact"},
      Wrong{"SHOAL_TIMEOUT_MS", "-1", "1 to 1000000000000, or 0: no limit"},
      Wrong{"SHOAL_TIMEOUT_MS", "1000000000001", "no limit"}, Wrong{"SHOAL_TIMEOUT_MS", "10s", "no limit"},
      Wrong{"SHOAL_TIMEOUT_MS", "1K", "no limit"}, Wrong{"SHOAL_TIMEOUT_MS", "99999999999999999999", "no limit"},
      Wrong{"SHOAL_SLICE_BYTES", "63", "64 to 16777216"}, Wrong{"SHOAL_SLICE_BYTES", "17M", "64 to 16777216"},
      Wrong{"SHOAL_SLICE_BYTES", "K", "64 to 16777216"}, Wrong{"SHOAL_SLICE_BYTES", "9223372036854775807M", "suffixes K, M"},
      Wrong{"SHOAL_CREDITS", "65", "1 to 64"}, Wrong{"SHOAL_CREDITS", " 4", "1 to 64"}, Wrong{"SHOAL_CREDITS", "--4", "1 to 64"},
      Wrong{"SHOAL_CREDITS", "0x", "1 to 64"}, Wrong{"SHOAL_CREDITS", "0x-1", "1 to 64"}, Wrong{"SHOAL_CREDITS", "08", "1 to 64"},
      Wrong{"SHOAL_IN_FLIGHT", "17", "1 to 16"}, Wrong{"SHOAL_SPIN_US", "-2", "or -1"});
  const Result<Environment> parsed = parse({{wrong.variable, wrong.value}});
  REQUIRE_FALSE(parsed.is_ok());
  CHECK(parsed.status().code() == Code::invalid_argument);
  const std::string text(parsed.status().text());
  CHECK_THAT(text, Catch::Contains(wrong.variable) && Catch::Contains(wrong.value) && Catch::Contains(wrong.allowed));
}

TEST_CASE("environment: the error names the spelling that was used") {
  const Result<Environment> parsed = parse({{"SHOAL_SOCKET_FAMILY", "inet"}});
  REQUIRE_FALSE(parsed.is_ok());
  CHECK_THAT(std::string(parsed.status().text()), Catch::StartsWith("SHOAL_SOCKET_FAMILY='inet'"));
}

TEST_CASE("environment: NCCL_ALGO is kept as it is said, with the name of the variable that was set") {
  CHECK(good({{"NCCL_ALGO", "AllReduce:Ring;^tree"}}).algo == "AllReduce:Ring;^tree");
  CHECK(good({{"NCCL_ALGO", "Ring"}}).algo_variable == "NCCL_ALGO");
  CHECK(good({{"NCCL_ALGO", "Ring"}, {"SHOAL_ALGO", "tree"}}).algo == "tree");
  CHECK(good({{"NCCL_ALGO", "Ring"}, {"SHOAL_ALGO", "tree"}}).algo_variable == "SHOAL_ALGO");
}

TEST_CASE("environment: an error never shows the secret") {
  const Result<Environment> parsed = parse({{"SHOAL_SECRET", "hunter2"}, {"SHOAL_CREDITS", "many"}});
  REQUIRE_FALSE(parsed.is_ok());
  CHECK(parsed.status().text().find("hunter2") == std::string_view::npos);
}

TEST_CASE("environment: NCCL's variables that nothing here reads are found, those of others are not") {
  CHECK(variables_without_effect({"HOME", "NCCL_ALGO", "NCCL_BUFFSIZE", "NCCL_CONF_FILE", "NCCL_DEBUG", "NCCL_UNHEARD_OF",
                                  "NCCL_SOCKET_RETRY_CNT", "SHOAL_JOB"}) ==
        std::vector<std::string>{"NCCL_BUFFSIZE", "NCCL_UNHEARD_OF"});
}
