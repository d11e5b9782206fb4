// SPDX-License-Identifier: Apache-2.0
#include "perf/buffer.h"

#include <catch2/catch.hpp>
#include <cstdint>

using shoal::perf::Buffer;

TEST_CASE("a buffer is aligned, zeroed and as long as asked") {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, std::size_t{3} << 20}) {
    const Buffer buffer = Buffer::allocate(bytes);
    REQUIRE(buffer.is_valid());
    const auto region = buffer.region(0, bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(region.data()) % (bytes >= 2 << 20 ? 2 << 20 : 4096) == 0);
    CHECK(std::all_of(region.begin(), region.end(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST_CASE("canaries tell of a byte before and a byte behind, at any shift") {
  const Buffer buffer = Buffer::allocate(1000);
  for (const std::size_t shift : {std::size_t{0}, std::size_t{7}}) {
    const auto region = buffer.region(shift, 900);
    Buffer::mark(region);
    region.front() = region.back() = std::byte{9};
    CHECK(Buffer::untouched(region));
    *(region.data() - 1) = std::byte{0};
    CHECK_FALSE(Buffer::untouched(region));
    Buffer::mark(region);
    *(region.data() + region.size()) = std::byte{0};
    CHECK_FALSE(Buffer::untouched(region));
  }
}

TEST_CASE("more memory than there is gives an invalid buffer, not a crash") {
  CHECK_FALSE(Buffer::allocate(std::size_t{1} << 60).is_valid());
}

TEST_CASE("a moved buffer keeps its memory") {
  Buffer one = Buffer::allocate(100);
  std::byte* const data = one.region(0, 100).data();
  Buffer two = std::move(one);
  CHECK(two.region(0, 100).data() == data);
}
