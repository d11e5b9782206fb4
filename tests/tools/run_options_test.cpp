// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tools/run/options.h"

using namespace shoal::run;

TEST_CASE("the command begins at the first word that is no option, and keeps its own options") {
  for (const auto& head : std::vector<std::vector<std::string>>{{"-n", "4"},
                                                                {"-n4"},
                                                                {"--ranks=4"},
                                                                {"--ranks", "4", "--timeout", "9"},
                                                                {"--no-label", "-n", "4"},
                                                                {"-n", "4", "--"},
                                                                {"-n", "4", "--bind", "core", "--"}}) {
    CAPTURE(head);
    std::vector<std::string> arguments = head;
    arguments.insert(arguments.end(), {"prog", "-n", "7", "--label", "--", "x"});
    Options options;
    REQUIRE(parse_options(arguments, options).proceed);
    CHECK(options.ranks == 4);
    CHECK(options.command == std::vector<std::string>{"prog", "-n", "7", "--label", "--", "x"});
  }
}

TEST_CASE("a command that begins with a dash can follow two dashes") {
  Options options;
  REQUIRE(parse_options({"-n", "1", "--", "-odd"}, options).proceed);
  CHECK(options.command == std::vector<std::string>{"-odd"});
}

TEST_CASE("labels: all ranks but 0 unless asked otherwise") {
  Options standard, all, none;
  REQUIRE(parse_options({"-n", "2", "x"}, standard).proceed);
  REQUIRE(parse_options({"-n", "2", "--label", "x"}, all).proceed);
  REQUIRE(parse_options({"-n", "2", "--no-label", "x"}, none).proceed);
  CHECK(standard.labels == Labels::others);
  CHECK(all.labels == Labels::all);
  CHECK(none.labels == Labels::none);
  CHECK(standard.binding == Binding::none);
  CHECK(standard.timeout_s == 0);
}
