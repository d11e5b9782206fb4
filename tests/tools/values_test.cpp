// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/values.h"

#include <catch2/catch.hpp>

using namespace shoal::cli;

TEST_CASE("sizes are digits with an optional binary suffix in either case") {
  const std::vector<std::pair<std::string, std::uint64_t>> good = {
      {"0", 0},          {"8", 8},          {"1K", 1024},       {"1k", 1024},
      {"64m", 67108864}, {"64M", 67108864}, {"1G", 1073741824}, {"2t", 2199023255552}};
  for (const auto& [text, bytes] : good) {
    CAPTURE(text);
    REQUIRE(parse_size(text).is_ok());
    CHECK(*parse_size(text) == bytes);
  }
}

TEST_CASE("what is no size is refused with a reason") {
  for (const std::string text : {"", "K", "8x", "-5", "+5", " 8", "8 ", "8KB", "8.5M", "0x10", "1e3", "M8"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_size(text).is_ok());
    CHECK(parse_size(text).why() == "is not a size: digits, then nothing or K, M, G, T");
  }
  for (const std::string text : {"99999999999G", "18446744073709551615", "18446744073709551616", "99999999999999999999999T"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_size(text).is_ok());
    CHECK(parse_size(text).why() == "is more than any memory holds");
  }
  CHECK(parse_size("1048576T").is_ok());  // 2^60, the largest
  CHECK_FALSE(parse_size("1048577T").is_ok());
}

TEST_CASE("sizes are shown the shortest way and read back as the same number") {
  CHECK(size_text(0) == "0");
  CHECK(size_text(1025) == "1025");
  CHECK(size_text(67108864) == "64M");
  CHECK(size_text(std::uint64_t{5} << 40) == "5T");
  for (const std::uint64_t bytes : {1ULL, 1024ULL, 3ULL << 30, 4095ULL, 1ULL << 60})
    CHECK(*parse_size(size_text(bytes)) == bytes);
}

TEST_CASE("whole numbers keep to their bounds and take nothing else") {
  CHECK(*parse_integer("-3", -5, 5) == -3);
  CHECK(*parse_integer("5", -5, 5) == 5);
  CHECK(parse_integer("6", -5, 5).why() == "must be at most 5");
  CHECK(parse_integer("-6", -5, 5).why() == "must be at least -5");
  for (const std::string text : {"", "x", "5x", "5.0", " 5", "+5", "--5"}) {
    CAPTURE(text);
    CHECK(parse_integer(text, -5, 5).why() == "is not a whole number");
  }
  CHECK(parse_integer("99999999999999999999", 0, 5).why() == "must be 0 to 5");
}

TEST_CASE("seconds may have a fraction but no sign, exponent or unit") {
  CHECK(*parse_seconds("0.5") == 0.5);
  CHECK(*parse_seconds("30") == 30);
  for (const std::string text : {"", "-1", "1e3", "5s", "nan", "inf", "1e10", "2000000000"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_seconds(text).is_ok());
  }
}

TEST_CASE("a choice is one of its words and the refusal lists them") {
  CHECK(*parse_choice("max", {"min", "max"}) == 1);
  CHECK(parse_choice("Max", {"min", "max"}).why() == "is none of: min max");
  CHECK_FALSE(parse_choice("", {"min", "max"}).is_ok());
}

TEST_CASE("lists of ranks join neighbours") {
  CHECK(rank_list({}) == "");
  CHECK(rank_list({3}) == "3");
  CHECK(rank_list({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
}
