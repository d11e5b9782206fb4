// SPDX-License-Identifier: Apache-2.0
#include "device/host_memory.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <limits>

using namespace shoal;
using device::shareable;

TEST_CASE("host memory: any part of a block can be found, and nothing else") {
  Result<void*> made = device::allocate_host({10'000});
  REQUIRE(made.is_ok());
  auto* const block = static_cast<std::byte*>(*made);
  const auto whole = shareable(block, {10'000});
  REQUIRE(whole);
  CHECK(whole->file >= 0);
  CHECK(whole->inode != 0);
  CHECK(whole->offset == 0);
  CHECK(whole->size >= 10'000);
  const auto part = shareable(block + 777, {1});
  REQUIRE(part);
  CHECK(part->offset == 777);
  CHECK(part->number == whole->number);
  CHECK(shareable(block + whole->size, {0}));  // nothing, at the very end
  CHECK_FALSE(shareable(block + whole->size, {1}));
  CHECK_FALSE(shareable(block + 1, {whole->size}));
  CHECK_FALSE(shareable(block, {std::numeric_limits<std::size_t>::max()}));
  CHECK_FALSE(shareable(&block, {1}));
  CHECK_FALSE(shareable(nullptr, {1}));

  const std::uint64_t frees = device::frees();
  CHECK(device::free_host(block).is_ok());
  CHECK(device::frees() == frees + 1);
  CHECK_FALSE(shareable(block, {1}));
  CHECK_FALSE(device::free_host(block).is_ok());
  CHECK(device::frees() == frees + 1);

  Result<void*> again = device::allocate_host({10'000});
  REQUIRE(again.is_ok());
  CHECK(shareable(*again, {1})->number > whole->number);
  CHECK(device::free_host(*again).is_ok());
}

TEST_CASE("host memory: all of a block is zero, whatever was there before") {
  for (int round = 0; round < 3; ++round) {
    Result<void*> made = device::allocate_host({std::size_t{3} << 20});
    REQUIRE(made.is_ok());
    auto* const bytes = static_cast<unsigned char*>(*made);
    std::size_t set = 0;
    for (std::size_t i = 0; i < std::size_t{3} << 20; ++i) set += bytes[i] != 0 ? 1U : 0U;
    CHECK(set == 0);
    std::fill_n(bytes, std::size_t{3} << 20, static_cast<unsigned char>(0xff));
    CHECK(device::free_host(*made).is_ok());
  }
}
