// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command_line.h"

#include <catch2/catch.hpp>

using namespace shoal::cli;

namespace {

struct Sample {
  int count = 7;
  std::uint64_t bytes = 0;
  bool on = false, flagged = false;

  Outcome parse(const std::vector<std::string>& arguments) {
    CommandLine line("sample: a program.", "sample [OPTIONS]", 42);
    line.integer("-n,--number", count, 1, "A number", 9);
    line.size("-b,--bytes", bytes, "A size");
    line.boolean("-o,--on", on, "A switch");
    line.flag("--flag", flagged, "A flag");
    return line.parse(arguments);
  }
};

}  // namespace

TEST_CASE("options are taken apart, attached, long and with an equals sign") {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"-n", "5", "-b", "1K", "-o", "1", "--flag"},
                                                                     {"-n5", "-b1K", "-o1", "--flag"},
                                                                     {"--number=5", "--bytes", "1k", "--on=1", "--flag"}}) {
    Sample sample;
    REQUIRE(sample.parse(arguments).proceed);
    CHECK(sample.count == 5);
    CHECK(sample.bytes == 1024);
    CHECK(sample.on);
    CHECK(sample.flagged);
  }
}

TEST_CASE("an option that is not given leaves its default, and a repeated one counts as its last value") {
  Sample sample;
  REQUIRE(sample.parse({"-b", "1", "-b", "2"}).proceed);
  CHECK(sample.count == 7);
  CHECK(sample.bytes == 2);
}

TEST_CASE("a refusal is one line that names option and value") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"-n", "0"}, "-n/--number 0: must be at least 1"},
      {{"--number", "10"}, "-n/--number 10: must be at most 9"},
      {{"-n", "-1"}, "-n/--number -1: must be at least 1"},
      {{"-b", ""}, "-b/--bytes '': is not a size: digits, then nothing or K, M, G, T"},
      {{"-o", "2"}, "-o/--on 2: must be at most 1"},
      {{"--nosuch"}, "--nosuch: is no option of this program"},
      {{"word"}, "word: is no option of this program"},
      {{"-n"}, "--number: needs a value"},
  };
  for (const auto& [arguments, line] : cases) {
    CAPTURE(arguments);
    Sample sample;
    const Outcome outcome = sample.parse(arguments);
    CHECK_FALSE(outcome.proceed);
    CHECK_FALSE(outcome.is_help);
    CHECK(outcome.exit_code == 42);
    CHECK(outcome.text == line);
  }
}

TEST_CASE("help is text for standard output with exit code 0") {
  Sample sample;
  const Outcome outcome = sample.parse({"--help"});
  CHECK_FALSE(outcome.proceed);
  CHECK(outcome.is_help);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.text.find("Usage: sample [OPTIONS]") != std::string::npos);
  CHECK(outcome.text.find("--bytes") != std::string::npos);
}
