// SPDX-License-Identifier: Apache-2.0
// Offers of memory as a careless, a mistaken and a hostile rank would make them.
#include "engine/foreign_memory.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <limits>

#include "device/host_memory.h"

using namespace shoal;
using namespace shoal::engine;

namespace {

OfferedPart offer_of(const void* start, std::size_t bytes) {
  const auto found = device::shareable(start, {bytes});
  REQUIRE(found);
  return {found->number, found->inode, found->size, found->offset, found->file};
}

}  // namespace

TEST_CASE("foreign memory: what is mapped is the owner's, from the part's beginning") {
  Result<void*> made = device::allocate_host({20'000});
  REQUIRE(made.is_ok());
  auto* const block = static_cast<std::byte*>(*made);
  ForeignMemory foreign({2});
  std::byte* const there = foreign.map({1}, getpid(), offer_of(block + 5000, 100), 100);
  REQUIRE(there != nullptr);
  CHECK(there != block + 5000);
  block[5000] = std::byte{7};
  CHECK(there[0] == std::byte{7});
  there[99] = std::byte{8};
  CHECK(block[5099] == std::byte{8});
  CHECK(foreign.map({1}, getpid(), offer_of(block, 20'000), 20'000) == there - 5000);  // mapped once

  // After its end the file is gone for new mappings, and the old one is dropped with the news.
  const OfferedPart gone = offer_of(block, 20'000);
  REQUIRE(device::free_host(block).is_ok());
  CHECK(foreign.map({1}, getpid(), gone, 1) != nullptr);
  foreign.look_at({1}, device::frees());
  CHECK(foreign.map({1}, getpid(), gone, 1) == nullptr);
}

TEST_CASE("foreign memory: what is not as it is said to be is refused") {
  Result<void*> made = device::allocate_host({20'000});
  REQUIRE(made.is_ok());
  const OfferedPart good = offer_of(*made, 20'000);
  const auto refused = [&](auto&& change, std::size_t bytes = 1) {
    OfferedPart wrong = good;
    change(wrong);
    return ForeignMemory({2}).map({1}, getpid(), wrong, bytes) == nullptr;
  };
  CHECK_FALSE(refused([](OfferedPart&) {}));
  CHECK(refused([](OfferedPart& part) { part.inode += 1; }));
  CHECK(refused([](OfferedPart& part) { part.size += 4096; }));
  CHECK(refused([](OfferedPart& part) { part.size -= 4096; }));
  CHECK(refused([](OfferedPart& part) { part.size = 0; }));
  CHECK(refused([](OfferedPart& part) { part.file = -1; }));
  CHECK(refused([](OfferedPart& part) { part.file = 0; }));
  CHECK(refused([](OfferedPart& part) { part.file = 1 << 30; }));
  CHECK(refused([](OfferedPart& part) { part.offset = part.size; }));
  CHECK(refused([](OfferedPart& part) { part.offset = std::numeric_limits<std::uint64_t>::max(); }));
  CHECK(refused([](OfferedPart&) {}, good.size + 1));
  CHECK(refused([](OfferedPart&) {}, std::numeric_limits<std::size_t>::max()));
  CHECK(ForeignMemory({2}).map({1}, std::numeric_limits<pid_t>::max(), good, 1) == nullptr);
  CHECK(device::free_host(*made).is_ok());
}
