// SPDX-License-Identifier: Apache-2.0
#include "comm/registrations.h"

#include <array>
#include <catch2/catch.hpp>
#include <span>

#include "device/announced_memory.h"

using shoal::comm::Registrations;
using Kind = Registrations::Kind;

TEST_CASE("registrations: a handle is known once, to its owner, as what it is") {
  std::array<char, 100> memory{};
  Registrations one, other;
  const std::uintptr_t buffer = one.add({Kind::buffer, memory.data(), {100}}),
                       window = one.add({Kind::window, memory.data(), {100}});
  CHECK(buffer != 0);
  CHECK(buffer != window);
  CHECK_FALSE(other.remove(Kind::buffer, buffer));
  CHECK_FALSE(one.remove(Kind::window, buffer));
  CHECK(one.remove(Kind::buffer, buffer));
  CHECK_FALSE(one.remove(Kind::buffer, buffer));
  CHECK(one.remove(Kind::window, window));
  CHECK(other.add({Kind::buffer, memory.data(), {100}}) > window);
}

TEST_CASE("registrations: the smallest one that holds all of a range is found") {
  std::array<char, 102> around{};
  char* const memory = around.data() + 1;
  Registrations all;
  all.add({Kind::window, memory, {100}});
  const std::uintptr_t inner = all.add({Kind::buffer, memory + 10, {20}});
  CHECK(all.covering(memory + 10, {20})->kind == Kind::buffer);
  CHECK(all.covering(memory + 29, {1})->kind == Kind::buffer);
  CHECK(all.covering(memory + 9, {2})->kind == Kind::window);
  CHECK(all.covering(memory + 10, {21})->kind == Kind::window);
  CHECK(all.covering(memory, {100})->size == shoal::Bytes{100});
  CHECK_FALSE(all.covering(memory + 1, {100}));
  CHECK_FALSE(all.covering(memory - 1, {2}));
  CHECK_FALSE(all.covering(memory + 50, {SIZE_MAX}));
  all.remove(Kind::buffer, inner);
  CHECK(all.covering(memory + 10, {20})->kind == Kind::window);
}

TEST_CASE("registrations: what is registered is announced to transports, until it is taken back or its communicator ends") {
  std::array<char, 100> memory{};
  const auto bytes = std::as_bytes(std::span(memory));
  CHECK_FALSE(shoal::device::announced(bytes));
  {
    Registrations all;
    const std::uintptr_t first = all.add({Kind::buffer, memory.data(), {100}});
    CHECK(shoal::device::announced(bytes.subspan(10))->memory.data() == bytes.data());
    CHECK(all.remove(Kind::buffer, first));
    CHECK_FALSE(shoal::device::announced(bytes));
    all.add({Kind::window, memory.data(), {50}});
    CHECK(shoal::device::announced(bytes.first(50)));
    CHECK_FALSE(shoal::device::announced(bytes.first(51)));
    CHECK_FALSE(shoal::device::announced(bytes.subspan(50)));
  }
  CHECK_FALSE(shoal::device::announced(bytes.first(1)));
}
