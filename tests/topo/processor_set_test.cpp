// SPDX-License-Identifier: Apache-2.0
#include "topo/processor_set.h"

#include <catch2/catch.hpp>

using namespace shoal::topo;

TEST_CASE("processor set: text and mask say the same set, and are read back") {
  const ProcessorSet set({8, 0, 1, 2, 3, 3, 33});
  CHECK(set.count() == 6);
  CHECK(text_of(set) == "0-3,8,33");
  CHECK(mask_of(set) == "00000002,0000010f");
  CHECK(*parse_processors("0-3,8,33\n") == set);
  CHECK(*parse_mask("2,10f") == set);
  CHECK(text_of(ProcessorSet()).empty());
  CHECK(mask_of(ProcessorSet()) == "00000000");
  CHECK(parse_processors("")->empty());
  CHECK(parse_mask("00000000")->empty());
  CHECK(*parse_processors("65535") == ProcessorSet({65535}));
}

TEST_CASE("processor set: part and whole") {
  const ProcessorSet all = *parse_processors("0-7"), some = *parse_processors("1,3"), other = *parse_processors("3,9");
  CHECK(all.covers(some));
  CHECK_FALSE(some.covers(all));
  CHECK_FALSE(all.covers(other));
  CHECK(all.covers(ProcessorSet()));
  CHECK(text_of(some.within(other)) == "3");
  CHECK(some.has(3));
  CHECK_FALSE(some.has(2));
}

TEST_CASE("processor set: what is none is refused, and names itself") {
  for (const char* text : {"a", "1-", "-1", "3-1", "1,,2", "1 2", "65536", "0-65536", "99999999999", "0x1"}) {
    INFO(text);
    const auto parsed = parse_processors(text);
    REQUIRE_FALSE(parsed.is_ok());
    CHECK(parsed.status().text().find("such as 0-3,8") != std::string_view::npos);
  }
  for (const char* text : {"", "g", "1,,1", "100000000", "0x1"}) {
    INFO(text);
    CHECK_FALSE(parse_mask(text).is_ok());
  }
  std::string many = "0-65535";
  for (int i = 0; i < 10; ++i) many += ",0-65535";  // would be slow, not wrong
  CHECK_FALSE(parse_processors(many).is_ok());
}
