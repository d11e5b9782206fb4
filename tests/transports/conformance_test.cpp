// SPDX-License-Identifier: Apache-2.0
// What every transport must do, in every arrangement that it can work in.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "device/host_memory.h"
#include "transports/pair.h"

namespace shoal::transports {
namespace {

// Long enough that the other side has gone to sleep as a rule; nothing is wrong if it has not.
constexpr std::chrono::milliseconds kUntilAsleep{100};

template <typename Scenario>
void everywhere(Scenario&& scenario) {
  REQUIRE_FALSE(arrangements().empty());
  for (const Arrangement& arrangement : arrangements_and_slowed()) {
    INFO(arrangement.name());
    CHECK(scenario(arrangement) == "");
  }
}

std::vector<std::size_t> edge_sizes(std::size_t max) { return {0, 1, 7, 8, 39, 40, 41, 63, 64, 65, 1000, 4096, max - 1, max}; }

// Of ncclMemAlloc: what a transport may pin.
class LibraryMemory {
 public:
  explicit LibraryMemory(std::size_t bytes) : start_(*device::allocate_host({bytes})), bytes_(bytes) {}
  LibraryMemory(const LibraryMemory&) = delete;
  ~LibraryMemory() { CHECK(device::free_host(start_).is_ok()); }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(start_), bytes_}; }

 private:
  void* start_;
  std::size_t bytes_;
};

void check_loss(const Status& health) {
  Party::check(health.code() == Code::remote_error, "a lost peer is a remote error");
  Party::check(health.culprit() == Rank{1}, "the culprit is rank 1: " + std::string(health.text()));
  for (const char* part : {"rank 1", "testhost", "pid 1001"})
    Party::check(health.text().find(part) != std::string_view::npos, fmt::format("{} in: {}", part, health.text()));
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

std::size_t shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t found = 0;
  for (std::string line; std::getline(maps, line);) found += line.find("memfd:shoal") != std::string::npos ? 1 : 0;
  return found;
}

// UCX, wherever else on this machine it is at work, gives its memory a name until it has opened it.
std::size_t named_segments() {
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    found += entry.path().filename().string().starts_with("ucx_shm_posix") ? 0 : 1;
  return found;
}

TEST_CASE("messages of every size arrive whole, in order and with their tags, both ways") {
  const Options options{.max_message = {10000}, .credits = 3};
  everywhere([&](const Arrangement& arrangement) {
    const auto talk = [&](Party& party, bool first) {
      for (int lap = 0; lap < 5; ++lap) {
        const bool sends = (lap % 2 == 0) == first;
        std::uint32_t tag = 0xfffffff0u + static_cast<std::uint32_t>(lap);  // wraps on the way
        for (const std::size_t size : edge_sizes(options.max_message.value)) {
          const auto payload = pattern(size, tag);
          sends ? party.send(payload, tag) : party.receive(payload, tag);
          ++tag;
        }
      }
      party.flush();
      party.sync();
    };
    return run(
        arrangement, options, [&](Party& party) { talk(party, true); }, [&](Party& party) { talk(party, false); });
  });
}

TEST_CASE("a link of tiny messages and one credit works") {
  const Options options{.max_message = {8}, .credits = 1};
  everywhere([&](const Arrangement& arrangement) {
    const auto send = [](Party& party) {
      for (std::uint32_t i = 0; i < 1000; ++i) party.send(pattern(i % 9, i), i);
      party.flush();
      party.sync();
    };
    const auto receive = [](Party& party) {
      for (std::uint32_t i = 0; i < 1000; ++i) party.receive(pattern(i % 9, i), i);
      party.sync();
    };
    return run(arrangement, options, send, receive);
  });
}

TEST_CASE("a full link gives no credit, stays whole, and recovers") {
  const Options options{.max_message = {1 << 20}, .credits = 5};
  everywhere([&](const Arrangement& arrangement) {
    const bool exact = arrangement.transport->carrier() != link::Carrier::network;  // sockets hold some themselves
    const auto send = [&](Party& party) {
      std::uint32_t sent = 0;
      for (int idle = 0; idle < 100;) {
        if (party.link().acquire(options.max_message).data() != nullptr) {
          party.send(pattern(options.max_message.value, sent), sent);
          ++sent;
          Party::check(sent < 200, "a link that nobody reads is full at some point");
        } else {
          Party::check(party.link().acquire({0}).data() == nullptr, "a full link has no room for nothing either");
          party.link().progress();
          ++idle;
        }
      }
      Party::check(exact ? sent == 5 : sent >= 5, fmt::format("{} messages went into the link", sent));
      party.expect_health();
      party.sync();
      for (; sent < 250; ++sent) party.send(pattern(100, sent), sent);
      party.flush();
      party.sync();
    };
    const auto receive = [&](Party& party) {
      party.sync();
      for (std::uint32_t i = 0; i < 250; ++i) {
        const link::Message* message = nullptr;
        party.until("a message", [&] { return (message = party.link().front()) != nullptr; });
        party.receive(pattern(message->payload.size() == 100 ? 100 : options.max_message.value, i), i);
      }
      party.sync();
    };
    return run(arrangement, options, send, receive);
  });
}

TEST_CASE("long streams of small messages both ways at once lose nothing") {
  const std::uint64_t kMessages = std::getenv("SHOAL_TEST_SMALL") != nullptr ? 2000 : 100000;
  everywhere([&](const Arrangement& arrangement) {
    const auto talk = [kMessages](Party& party) {
      std::uint64_t sent = 0;
      std::uint64_t received = 0;
      std::uint64_t sum = 0;
      link::Link& link = party.link();
      party.until("the end of the stream", [&] {
        if (sent < kMessages) {
          const std::uint64_t value = sent * sent;
          if (const auto memory = link.acquire({sizeof value}); memory.data() != nullptr) {
            std::memcpy(memory.data(), &value, sizeof value);
            link.commit({static_cast<std::uint32_t>(sent++)});
          }
        }
        if (const link::Message* message = link.front()) {
          Party::check(message->tag.value == received, "in order");
          std::uint64_t value = 0;
          Party::check(message->payload.size() == sizeof value, "whole");
          std::memcpy(&value, message->payload.data(), sizeof value);
          sum += value;
          ++received;
          link.release();
        }
        return sent == kMessages && received == kMessages && link.flushed();
      });
      Party::check(sum == (kMessages - 1) * kMessages * (2 * kMessages - 1) / 6, "the sum of the first squares");
      party.sync();
    };
    return run(arrangement, {}, talk, talk);
  });
}

TEST_CASE("what a rank sent before it left is delivered, then the link names it") {
  everywhere([&](const Arrangement& arrangement) {
    const auto stay = [](Party& party) {
      party.expect_health();
      party.sync();
      party.sync();
      for (std::uint32_t i = 0; i < 3; ++i) {
        party.expect_health();
        party.receive(pattern(1000 * i, i), i);
      }
      check_loss(party.await_loss());
      Party::check(party.link().front() == nullptr, "nothing comes after the end");
      check_loss(party.link().health());
    };
    const auto leave = [](Party& party) {
      party.sync();
      for (std::uint32_t i = 0; i < 3; ++i) party.send(pattern(1000 * i, i), i);
      party.flush();
      party.leave();
      party.sync();
    };
    return run(arrangement, {}, stay, leave);
  });
}

TEST_CASE("a rank that waits for credit of one that left learns of it, though a message is unread") {
  const Options options{.max_message = {1 << 20}, .credits = 2};
  everywhere([&](const Arrangement& arrangement) {
    const auto stay = [&](Party& party) {
      party.sync();
      const link::Message* message = nullptr;
      party.until("the unread message", [&] { return (message = party.link().front()) != nullptr; });
      for (std::uint32_t i = 0; i < 100 && party.link().acquire(options.max_message).data() != nullptr; ++i)
        party.send(pattern(options.max_message.value, i), i);
      party.sync();
      party.sync();
      Status health;
      party.until("the loss", [&] {
        const bool full = party.link().acquire(options.max_message).data() == nullptr;
        if (!full) party.link().commit({0});  // a socket takes some more before it is known to be broken
        return full && !(health = party.link().health()).is_ok();
      });
      check_loss(health);
    };
    const auto leave = [](Party& party) {
      party.send(pattern(10, 0), 0);
      party.flush();
      party.sync();
      party.sync();
      party.leave();
      party.sync();
    };
    return run(arrangement, options, stay, leave);
  });
}

TEST_CASE("what a process sent before it was killed is delivered, then the link names it") {
  for (const Arrangement& arrangement : arrangements_and_slowed()) {
    if (arrangement.apart != Apart::processes) continue;
    INFO(arrangement.name());
    const auto survive = [](Party& party) {
      party.sync();
      party.until("the first message", [&] { return party.link().front() != nullptr; });
      for (std::uint32_t i = 0; i < 3; ++i) party.receive(pattern(5000 * i, i), i);
      check_loss(party.await_loss());
    };
    const auto die = [](Party& party) {
      party.sync();
      for (std::uint32_t i = 0; i < 3; ++i) party.send(pattern(5000 * i, i), i);
      party.flush();
      ::kill(::getpid(), SIGKILL);
    };
    CHECK(run(arrangement, {.higher_is_killed = true}, survive, die) == "");
  }
}

TEST_CASE("a sleeper is woken by a message and by a credit") {
  const Options options{.max_message = {1 << 20}, .credits = 2};
  everywhere([&](const Arrangement& arrangement) {
    const auto sleep = [&](Party& party) {
      party.sync();
      party.sleep_until([&] { return party.link().front() != nullptr; });
      party.receive(pattern(100, 1), 1);

      std::uint32_t sent = 0;
      for (int idle = 0; idle < 100; party.link().progress()) {
        if (party.link().acquire(options.max_message).data() == nullptr)
          ++idle;
        else
          party.send(pattern(options.max_message.value, sent), sent), ++sent;
      }
      party.sync();
      party.sleep_until([&] { return party.link().acquire({1}).data() != nullptr; });
      party.send(pattern(1, sent), sent);
      party.flush();
      party.sync();
    };
    const auto wake = [&](Party& party) {
      party.sync();
      std::this_thread::sleep_for(kUntilAsleep);
      party.send(pattern(100, 1), 1);
      party.flush();
      party.sync();
      std::this_thread::sleep_for(kUntilAsleep);
      for (std::uint32_t i = 0;; ++i) {
        const link::Message* message = nullptr;
        party.until("a message", [&] { return (message = party.link().front()) != nullptr; });
        const std::size_t size = message->payload.size();
        party.receive(pattern(size, i), i);
        if (size == 1) break;
      }
      party.sync();
    };
    return run(arrangement, options, sleep, wake);
  });
}

TEST_CASE("a sleeper is woken when its peer leaves or dies") {
  everywhere([&](const Arrangement& arrangement) {
    const auto sleep = [](Party& party) {
      party.sync();
      const link::Wakeup wakeup = party.link().wakeup();
      if (wakeup.descriptor < 0) {
        party.sleep_until([&] { return !party.link().health().is_ok(); });
      } else {
        pollfd stream{.fd = wakeup.descriptor, .events = wakeup.events, .revents = 0};
        Party::check(::poll(&stream, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) == 1,
                     "the descriptor wakes");
      }
      check_loss(party.await_loss());
    };
    const auto go = [&](Party& party) {
      party.sync();
      std::this_thread::sleep_for(kUntilAsleep);
      if (arrangement.apart == Apart::processes) ::kill(::getpid(), SIGKILL);
      party.leave();
    };
    return run(arrangement, {.higher_is_killed = arrangement.apart == Apart::processes}, sleep, go);
  });
}

TEST_CASE("direct payloads pass between user memories, mixed with eager ones, both ways at once, longer than any socket buffer") {
  constexpr std::size_t kLong = (12 << 20) + 3;
  const Options options{.max_message = {kLong}, .credits = 2};
  everywhere([&](const Arrangement& arrangement) {
    const auto talk = [&](Party& party) {
      link::Direct* direct = party.link().direct();
      if (direct == nullptr) return;
      const auto payload = pattern(kLong, 9);
      std::vector<std::byte> target(kLong + 5);
      for (std::uint32_t round = 0; round < 3; ++round) {
        const std::size_t bytes = kLong - round;
        party.send(pattern(33, round), round);
        Party::check(direct->send(std::span(payload).first(bytes), {100 + round}), "there is room for one direct message");
        Party::check(direct->sent() || !direct->send(payload, {0}), "one direct message at a time");
        party.send(pattern(44, round), 200 + round);

        party.receive(pattern(33, round), round);
        direct->expect(target);
        party.receive(std::span(payload).first(bytes), 100 + round);
        party.receive(pattern(44, round), 200 + round);
        party.until("sent", [&] { return direct->sent(); });
      }
      party.flush();
      party.sync();
    };
    return run(arrangement, options, talk, talk);
  });
}

TEST_CASE("an expected payload lands where it is wanted, unless it does not fit") {
  constexpr std::size_t kBytes = 1 << 20;
  const Options options{.max_message = {kBytes}, .credits = 8};
  everywhere([&](const Arrangement& arrangement) {
    const auto receive = [&](Party& party) {
      link::Direct* direct = party.link().direct();
      if (direct == nullptr) return;
      const LibraryMemory memory(kBytes);
      const std::span<std::byte> target = memory.bytes();
      const link::Message* message = nullptr;
      const auto await = [&] { party.until("a message", [&] { return (message = party.link().front()) != nullptr; }); };
      for (std::uint32_t i = 0; i < 3; ++i) {  // one after the other: the next header comes with the payload before
        direct->expect(target);
        party.flush();  // the peer knows
        party.sync();
        await();
        Party::check(message->payload.data() == target.data(), "the payload is in the target");
        party.receive(pattern(kBytes, i), i);
      }

      std::fill(target.begin(), target.end(), std::byte{0});
      // A target that is too small is no target.
      direct->expect(target.first(kBytes - 1));
      party.flush();
      party.sync();
      party.receive(pattern(kBytes, 3), 3);
      Party::check(std::all_of(target.begin(), target.end(), [](std::byte each) { return each == std::byte{0}; }),
                   "a target that is too small is left alone");
      party.sync();
    };
    const auto send = [&](Party& party) {
      link::Direct* direct = party.link().direct();
      if (direct == nullptr) return;
      const auto send_direct = [&](std::uint32_t tag) {
        const LibraryMemory memory(kBytes);
        const auto payload = pattern(kBytes, tag);
        std::copy(payload.begin(), payload.end(), memory.bytes().begin());
        Party::check(direct->send(memory.bytes(), {tag}), "room");
        party.until("sent", [&] { return direct->sent(); });
      };
      for (std::uint32_t i = 0; i < 4; ++i) {
        party.sync();
        send_direct(i);
      }
      party.sync();
    };
    return run(arrangement, options, receive, send);
  });
}

TEST_CASE("links leave no descriptor, no mapping and no named segment behind") {
  everywhere([&](const Arrangement& arrangement) {
    const std::size_t descriptors = open_descriptors();
    const std::size_t mappings = shared_mappings();
    const std::size_t segments = named_segments();
    const auto talk = [&](Party& party) {
      party.sync();
      party.send(pattern(5000, 1), 1);
      party.receive(pattern(5000, 1), 1);
      party.flush();
      Party::check(named_segments() == segments, "nothing has a name in /dev/shm");
      party.sync();
    };
    for (int lap = 0; lap < 3; ++lap) {
      std::string failure = run(arrangement, {}, talk, talk);
      if (!failure.empty()) return failure;
    }
    CHECK(open_descriptors() == descriptors);
    CHECK(shared_mappings() == mappings);
    CHECK(named_segments() == segments);
    return std::string();
  });
}

}  // namespace
}  // namespace shoal::transports
