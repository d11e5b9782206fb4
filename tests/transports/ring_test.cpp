// SPDX-License-Identifier: Apache-2.0
#include "link/ring.h"

#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace shoal::link {
namespace {

struct alignas(kCacheLine) Line {
  std::array<std::byte, kCacheLine> bytes;
};

// A ring in memory of its own.
struct TestRing {
  TestRing(RingShape ring_shape, std::uint64_t start)
      : shape(ring_shape),
        lines(shape.bytes() / kCacheLine),
        producer(prepared(start), shape, start),
        consumer(memory(), shape, start) {}

  std::span<std::byte> memory() { return {lines[0].bytes.data(), shape.bytes()}; }
  std::span<std::byte> prepared(std::uint64_t start) {
    prepare_ring(memory(), shape, start);
    return memory();
  }
  bool send(std::size_t bytes, std::uint32_t tag) {
    const auto into = producer.acquire({bytes});
    if (into.data() == nullptr) return false;
    for (std::size_t i = 0; i < bytes; ++i) into[i] = static_cast<std::byte>(i + tag);
    producer.commit({tag});
    return true;
  }
  bool receive(std::size_t bytes, std::uint32_t tag) {
    const Message* message = consumer.front();
    if (message == nullptr || message->tag.value != tag || message->payload.size() != bytes) return false;
    for (std::size_t i = 0; i < bytes; ++i)
      if (message->payload[i] != static_cast<std::byte>(i + tag)) return false;
    consumer.release(nullptr);
    return true;
  }

  RingShape shape;
  std::vector<Line> lines;
  RingProducer producer;
  RingConsumer consumer;
};

const std::uint64_t kStarts[] = {0, (1ull << 31) - 3, (1ull << 32) - 3, std::numeric_limits<std::uint64_t>::max() - 2};

TEST_CASE("ring: a small message costs one cache line") {
  STATIC_REQUIRE(sizeof(RingControlLine) == 64);
  CHECK(RingShape{{kInlinePayload}, 4}.stride() == 0);
  CHECK(RingShape{{kInlinePayload + 1}, 4}.stride() == 64);
  CHECK(RingShape{{65536}, 4}.bytes() == 6 * 64 + 4 * 65536);
}

TEST_CASE("ring: messages pass across every wrap of the counters, whatever the number of slots") {
  for (const std::uint64_t start : kStarts) {
    for (const int credits : {1, 2, 3, 4, 5, 8}) {
      TestRing ring({{200}, credits}, start);
      CHECK(ring.consumer.front() == nullptr);
      std::uint32_t sent = 0;
      std::uint32_t received = 0;
      for (std::uint32_t step = 0; step < 100; ++step) {
        for (int i = 0; i < credits; ++i, ++sent) REQUIRE(ring.send(sent * 7 % 201, sent));
        REQUIRE_FALSE(ring.send(0, 0));
        // Some are left behind, so that the ring is full at every slot.
        for (int i = 0; i < 1 + static_cast<int>(step) % credits; ++i, ++received)
          REQUIRE(ring.receive(received * 7 % 201, received));
        for (; received < sent; ++received) REQUIRE(ring.receive(received * 7 % 201, received));
        REQUIRE(ring.consumer.front() == nullptr);
      }
    }
  }
}

TEST_CASE("ring: credit comes back one by one") {
  TestRing ring({{64}, 3}, (1ull << 32) - 3);
  for (std::uint32_t i = 0; i < 3; ++i) REQUIRE(ring.send(50, i));
  for (std::uint32_t i = 0; i < 100; ++i) {
    REQUIRE_FALSE(ring.send(50, 0));
    REQUIRE(ring.receive(50, i));
    REQUIRE(ring.send(50, i + 3));
  }
}

TEST_CASE("ring: a release asks for the doorbell only while the producer waits for credit") {
  TestRing ring({{8}, 2}, 0);
  const auto released = [&] {
    REQUIRE(ring.consumer.front() != nullptr);
    return ring.consumer.release(nullptr);
  };
  REQUIRE(ring.send(8, 0));
  CHECK_FALSE(released());
  REQUIRE(ring.send(8, 1));
  REQUIRE(ring.send(8, 2));
  CHECK_FALSE(ring.producer.is_starving());
  REQUIRE_FALSE(ring.send(8, 3));
  CHECK(ring.producer.is_starving());
  CHECK(released());
  CHECK_FALSE(ring.producer.is_starving());
  REQUIRE(ring.send(8, 3));
  CHECK_FALSE(released());
}

TEST_CASE("ring: acquiring again before the commit replaces what was acquired") {
  TestRing ring({{100}, 2}, 0);
  REQUIRE(ring.producer.acquire({100}).size() == 100);
  const auto memory = ring.producer.acquire({0});
  REQUIRE(memory.data() != nullptr);
  CHECK(memory.empty());
  ring.producer.commit({5});
  CHECK(ring.receive(0, 5));
}

TEST_CASE("ring: misuse is a broken expectation") {
  TestRing ring({{100}, 1}, 0);
  CHECK_THROWS_AS(ring.producer.acquire({101}), BrokenExpectation);
  CHECK_THROWS_AS(ring.producer.commit({0}), BrokenExpectation);
  CHECK_THROWS_AS(ring.consumer.release(nullptr), BrokenExpectation);
  REQUIRE(ring.send(1, 1));
  CHECK_THROWS_AS(ring.producer.commit({0}), BrokenExpectation);
  CHECK_THROWS_AS(ring.consumer.release(nullptr), BrokenExpectation);
}

TEST_CASE("ring: a length that cannot be shows no message and is told") {
  TestRing ring({{100}, 2}, 0);
  for (const std::uint64_t length : {std::uint64_t{101}, std::numeric_limits<std::uint64_t>::max()}) {
    RingControlLine& control = ring.shape.controls(ring.memory())[0];
    control.length = length;
    control.sequence.store(1);
    CHECK(ring.consumer.front() == nullptr);
    CHECK(ring.consumer.impossible_length() == length);
    CHECK(ring.consumer.front() == nullptr);
  }
}

TEST_CASE("ring: a length that changes after the message was shown changes nothing") {
  TestRing ring({{100}, 2}, 0);
  REQUIRE(ring.send(10, 3));
  REQUIRE(ring.consumer.front()->payload.size() == 10);
  ring.shape.controls(ring.memory())[0].length = 1 << 20;
  CHECK(ring.consumer.front()->payload.size() == 10);
  CHECK(ring.receive(10, 3));
}

TEST_CASE("ring: a peer that releases what was never sent only looks like a full ring") {
  TestRing ring({{100}, 2}, 0);
  ring.shape.consumer(ring.memory())->released.store(1000);
  REQUIRE(ring.send(10, 0));
  REQUIRE(ring.send(10, 1));
  CHECK_FALSE(ring.send(10, 2));
}

TEST_CASE("ring: two threads pass a stream of mixed sizes across the wrap of 32 bits") {
  constexpr std::uint32_t kMessages = 20000;
  for (const int credits : {1, 3, 16}) {
    TestRing ring({{500}, credits}, (1ull << 32) - 3);
    std::thread sender([&] {
      for (std::uint32_t i = 0; i < kMessages; ++i)
        while (!ring.send(i % 501, i)) std::this_thread::yield();
    });
    std::uint32_t received = 0;
    bool intact = true;
    while (received < kMessages) {
      if (ring.consumer.front() == nullptr) {
        std::this_thread::yield();
        continue;
      }
      if (!ring.receive(received % 501, received)) {
        intact = false;
        ring.consumer.release(nullptr);
      }
      ++received;
    }
    sender.join();
    CHECK(intact);
  }
}

}  // namespace
}  // namespace shoal::link
