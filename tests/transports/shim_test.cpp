// SPDX-License-Identifier: Apache-2.0
// What a slowed wire promises: nothing comes before its time, in order, and how much is under way is not for the inner link's
// credits to say. (That it is a link like any other is the conformance suite's matter.)
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "transports/pair.h"
#include "transports/shim/link.h"
#include "transports/shim/pace.h"

namespace shoal::transports {
namespace {

using namespace std::chrono_literals;
using Clock = Pace::Clock;

constexpr Clock::time_point kStart{1h};

std::vector<Arrangement> slowed_by(const Shim& shim) {
  std::vector<Arrangement> all = arrangements();
  for (Arrangement& each : all) each.shim = shim;
  return all;
}

// The sender's clock in the first bytes; both sides are on this host.
std::vector<std::byte> stamped(std::size_t bytes) {
  std::vector<std::byte> payload(bytes);
  const std::int64_t now = Clock::now().time_since_epoch().count();
  std::memcpy(payload.data(), &now, sizeof now);
  return payload;
}

std::chrono::nanoseconds age(const link::Message& message) {
  std::int64_t sent = 0;
  std::memcpy(&sent, message.payload.data(), sizeof sent);
  return Clock::now() - Clock::time_point(std::chrono::nanoseconds(sent));
}

const link::Message* await(Party& party) {
  const link::Message* message = nullptr;
  party.until("a message", [&] { return (message = party.link().front()) != nullptr; });
  return message;
}

}  // namespace

TEST_CASE("pace: a message is due a latency and its own time after it was sent, or after the wire is free") {
  Pace pace({.latency = 100ms, .bandwidth_Bps = 1e6}, 0);  // a byte a microsecond
  CHECK(pace.due(kStart, {1000}) == kStart + 100ms + 1ms);
  CHECK(pace.due(kStart, {2000}) == kStart + 100ms + 3ms);          // behind the first
  CHECK(pace.due(kStart + 2ms, {0}) == kStart + 100ms + 3ms);       // the wire is still busy
  CHECK(pace.due(kStart + 10ms, {500}) == kStart + 110ms + 500us);  // it is free again
}

TEST_CASE("pace: without a bandwidth nothing waits for the wire") {
  Pace pace({.latency = 7ms}, 0);
  CHECK(pace.due(kStart, {std::size_t{1} << 40}) == kStart + 7ms);
  CHECK(pace.due(kStart + 1ns, {0}) == kStart + 7ms + 1ns);
}

TEST_CASE("pace: jitter adds up to its most, keeps the order, and is the same for the same seed and direction") {
  const Shim shim{.latency = 10ms, .jitter = 5ms, .seed = 3};
  Pace one(shim, 1), same(shim, 1), other(shim, 2);
  Clock::time_point last = kStart;
  std::chrono::nanoseconds least = 1h, most = 0ns;
  int differ = 0;
  for (int i = 0; i < 1000; ++i) {
    const Clock::time_point now = kStart + i * 6ms;  // far enough apart for the order to change nothing
    const Clock::time_point due = one.due(now, {100});
    CHECK(due == same.due(now, {100}));
    differ += due != other.due(now, {100}) ? 1 : 0;
    CHECK(due >= last);
    last = due;
    least = std::min(least, due - now);
    most = std::max(most, due - now);
  }
  CHECK(least >= 10ms);
  CHECK(least < 10500us);
  CHECK(most <= 15ms);
  CHECK(most > 14500us);
  CHECK(differ > 990);
  const Clock::time_point now = last;
  for (int i = 0; i < 1000; ++i) {  // all at once: none before an earlier one
    const Clock::time_point due = one.due(now, {0});
    CHECK(due >= std::max(now + 10ms, last));
    last = due;
  }
  CHECK(last <= now + 15ms);
}

TEST_CASE("shim: no message comes before its latency and its time on the wire, and all come in order") {
  const Shim shim{.latency = 20ms, .jitter = 10ms, .bandwidth_Bps = 10e6};  // 64 KiB: 6.6 ms
  constexpr std::size_t kBytes = 64 << 10;
  constexpr int kMessages = 8;
  for (const Arrangement& arrangement : slowed_by(shim)) {
    INFO(arrangement.name());
    const auto send = [&](Party& party) {
      party.sync();
      for (std::uint32_t i = 0; i < kMessages; ++i) party.send(stamped(kBytes), i);
      party.flush();
      party.sync();
    };
    const auto receive = [&](Party& party) {
      party.sync();
      for (std::uint32_t i = 0; i < kMessages; ++i) {
        const link::Message* message = await(party);
        Party::check(message->tag.value == i && message->payload.size() == kBytes, "in order and whole");
        Party::check(age(*message) >= 20ms + std::chrono::nanoseconds(kBytes * 100), "not before its time");
        party.link().release();
      }
      party.sync();
    };
    CHECK(run(arrangement, {}, send, receive) == "");
  }
}

TEST_CASE("shim: one wire for all messages, so that the last of many waits for those before it") {
  const Shim shim{.bandwidth_Bps = 20e6};
  constexpr std::size_t kBytes = 50000;  // 2.5 ms
  constexpr int kMessages = 20;
  for (const Arrangement& arrangement : slowed_by(shim)) {
    INFO(arrangement.name());
    const auto send = [&](Party& party) {
      const std::vector<std::byte> first = stamped(kBytes);  // all carry the time of the first
      for (std::uint32_t i = 0; i < kMessages; ++i) party.send(first, i);
      party.flush();
      party.sync();
    };
    const auto receive = [&](Party& party) {
      for (int i = 1; i <= kMessages; ++i) {
        Party::check(age(*await(party)) >= i * 2500us, "behind the messages before it");
        party.link().release();
      }
      party.sync();
    };
    CHECK(run(arrangement, {}, send, receive) == "");
  }
}

TEST_CASE("shim: more is under way than the inner link holds, while the receiver only looks after its link") {
  constexpr std::uint32_t kMessages = 200;
  const Options options{.max_message = {1000}, .credits = 2};
  for (const Arrangement& arrangement : slowed_by({.latency = 5s})) {
    INFO(arrangement.name());
    const auto send = [&](Party& party) {
      for (std::uint32_t i = 0; i < kMessages; ++i) party.send(pattern(1000, i), i);
      party.flush();
      party.sync();
    };
    const auto look_after = [](Party& party) {
      std::thread other([&] { party.sync(); });  // returns when all have been sent
      std::atomic<bool> all{false};
      std::thread watch([&] { other.join(), all = true; });
      party.until("all messages out of the inner link", [&] {
        Party::check(party.link().front() == nullptr, "nothing is due yet");
        Party::check(all || !party.link().wakeup().at || *party.link().wakeup().at > Clock::now(), "known, and to come");
        return all.load();
      });
      watch.join();
    };
    CHECK(run(arrangement, options, send, look_after) == "");
  }
}

TEST_CASE("shim: what waits for its time is delivered though the sender is gone, and then the link says so") {
  for (const Arrangement& arrangement : slowed_by({.latency = 300ms})) {
    INFO(arrangement.name());
    const auto stay = [](Party& party) {
      party.sync();
      party.sync();
      for (std::uint32_t i = 0; i < 3; ++i) {
        party.expect_health();
        party.receive(pattern(1000 * i, i), i);
      }
      Party::check(party.await_loss().culprit() == Rank{1}, "the loss of rank 1");
    };
    const auto leave = [](Party& party) {
      party.sync();
      for (std::uint32_t i = 0; i < 3; ++i) party.send(pattern(1000 * i, i), i);
      party.flush();
      party.leave();
      party.sync();
    };
    CHECK(run(arrangement, {}, stay, leave) == "");
  }
}

TEST_CASE("shim: a slowed transport says how slow, and gives away no memory and no direct way") {
  for (const Arrangement& arrangement : slowed_by({.latency = 1ms, .jitter = 2ms, .bandwidth_Bps = 1e6})) {
    ShimmedTransports shimmed(*arrangement.shim, std::span<link::Transport* const>(&arrangement.transport, 1));
    const link::Transport& slowed = *shimmed.transports().front();
    CHECK(slowed.name() == arrangement.transport->name());
    CHECK(slowed.carrier() == arrangement.transport->carrier());
    CHECK(slowed.capabilities().latency_s == Approx(arrangement.transport->capabilities().latency_s + 2e-3));
    CHECK(slowed.capabilities().bandwidth_Bps == 1e6);
    const auto look = [](Party& party) {
      Party::check(party.link().direct() == nullptr && party.link().window().empty(), "no other way");
      Party::check(party.link().max_message().value == 777, "messages as long as was asked for");
      party.sync();
    };
    CHECK(run(arrangement, {.max_message = {777}}, look, look) == "");
  }
}

}  // namespace shoal::transports
