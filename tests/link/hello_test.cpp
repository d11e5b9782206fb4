// SPDX-License-Identifier: Apache-2.0
#include "link/hello.h"

#include <catch2/catch.hpp>
#include <vector>

#include "core/expects.h"

using namespace shoal;
using namespace shoal::link;

TEST_CASE("hello: what is encoded is decoded") {
  const Hello hello = GENERATE(Hello{}, Hello{0xfedc'ba98'7654'3210, {3}, {70'000}, 1023, "shm"},
                               Hello{1, {-1}, {-2}, -3, std::string(Hello::kMaxName, 'n')});
  const auto bytes = hello.encode();
  CHECK(Hello::decode(bytes) == hello);
}

TEST_CASE("hello: other lengths and bytes that encode never makes are refused") {
  const auto bytes = Hello{7, {0}, {1}, 2, "tcp"}.encode();
  for (std::size_t n = 0; n < bytes.size(); ++n) CHECK_FALSE(Hello::decode(std::span(bytes).first(n)));
  std::vector<std::byte> longer(bytes.begin(), bytes.end());
  longer.push_back(std::byte{0});
  CHECK_FALSE(Hello::decode(longer));
  for (const std::size_t wrong : {0, 7, 28, 32, 63}) {  // magic, length of the name, zeros after the name
    auto changed = bytes;
    changed[wrong] ^= std::byte{0x80};
    CHECK_FALSE(Hello::decode(changed));
  }
}

TEST_CASE("hello: a name that does not fit is a bug of the caller") {
  const Hello hello{1, {0}, {1}, 0, std::string(Hello::kMaxName + 1, 'n')};
  CHECK_THROWS_AS(hello.encode(), BrokenExpectation);
}
