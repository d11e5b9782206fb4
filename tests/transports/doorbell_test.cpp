// SPDX-License-Identifier: Apache-2.0
#include "link/doorbell.h"

#include <fcntl.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

namespace shoal::link {
namespace {

using namespace std::chrono_literals;

TEST_CASE("doorbell: nobody rings, the sleeper comes back at its time") {
  Doorbell doorbell;
  CHECK_FALSE(doorbell.sleep(doorbell.arm(), 1ms));
  CHECK_FALSE(doorbell.sleep(doorbell.arm(), 0ns));
  CHECK_FALSE(doorbell.sleep(doorbell.arm(), -5s));
}

TEST_CASE("doorbell: a ring between arming and sleeping is not lost") {
  Doorbell doorbell;
  const std::uint32_t ticket = doorbell.arm();
  doorbell.ring();
  CHECK(doorbell.sleep(ticket, 1h));
}

TEST_CASE("doorbell: a ring at nobody is not remembered, and costs nothing") {
  Doorbell doorbell;
  doorbell.ring();
  CHECK(doorbell.word().load() == 0);
  doorbell.arm();
  doorbell.disarm();
  doorbell.ring();
  CHECK(doorbell.word().load() == 0);
  CHECK_FALSE(doorbell.sleep(doorbell.arm(), 1ms));
}

TEST_CASE("doorbell: news published before each ring never leaves the sleeper asleep") {
  Doorbell doorbell;
  std::atomic<int> news{0};
  std::thread peer([&] {
    for (int i = 1; i <= 5000; ++i) {
      while (news.load() != 0) std::this_thread::yield();
      news.store(i);
      doorbell.ring();
    }
  });
  bool always_woken = true;
  for (int i = 1; i <= 5000; ++i) {
    while (true) {
      const std::uint32_t ticket = doorbell.arm();
      if (news.load() == i) break;
      always_woken = doorbell.sleep(ticket, 60s) && always_woken;
    }
    doorbell.disarm();
    news.store(0);
  }
  peer.join();
  CHECK(always_woken);
}

TEST_CASE("doorbell page: a peer that maps it wakes its owner") {
  auto own = DoorbellPage::create();
  REQUIRE(own.is_ok());
  REQUIRE(own->descriptor() >= 0);
  const Descriptor passed{::fcntl(own->descriptor(), F_DUPFD_CLOEXEC, 0)};
  auto peers = DoorbellPage::map(passed);
  REQUIRE(peers.is_ok());
  CHECK(peers->descriptor() == -1);
  CHECK(&peers->doorbell() != &own->doorbell());

  const DoorbellPage moved = own.take();
  const std::uint32_t ticket = moved.doorbell().arm();
  peers->doorbell().ring();
  CHECK(moved.doorbell().sleep(ticket, 1h));
}

}  // namespace
}  // namespace shoal::link
