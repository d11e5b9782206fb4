// SPDX-License-Identifier: Apache-2.0
// Devices that exist in this process only, for tests of what hardware seldom does. All threads of the process are joined by one
// fabric, which is stricter than a device: an access outside of pinned memory, a queue that overflows, a receive that is missing
// break the queue pair. Writes of different queue pairs may overtake each other. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transports/verbs/face.h"

namespace shoal::transports::verbs {

class FakeQueuePair;
class FakeCompletions;

struct FakeDevice {
  std::string name;
  std::vector<PortFacts> ports;
  std::vector<GidEntry> gids;  // of every port
};

// A device with one RoCE port that works.
FakeDevice fake_device(std::string name, unsigned address);

class FakeFabric {
 public:
  std::vector<FakeDevice> devices{fake_device("fake0", 1)};
  std::size_t inline_bytes = 220;
  bool overtaking = false;  // writes wait, and go when someone looks, in any order that their queue pairs allow
  // What is refused, with the reason "fake": the name of a step (list, open, port, gids, completions, pin, queue_pair, receives,
  // connect, post, arm). Asked under no lock.
  std::function<bool(const std::string& step)> refuses = [](const std::string&) { return false; };
  // How a write ends.
  std::function<Outcome(const Write&)> outcome = [](const Write&) { return Outcome::ok; };

  // What a mad peer does to its own writes; `bytes`: of inlined ones.
  std::function<void(Write&, std::vector<std::byte>& bytes)> spoil = [](Write&, std::vector<std::byte>&) {};

  // What happens to a device.
  void happen(const std::string& device, Event event);

  struct Tally {
    std::uint64_t writes = 0, signalled = 0, inlined = 0;
    std::uint64_t pinned = 0;  // regions ever
  };
  Tally tally();
  std::size_t regions_alive();

  std::unique_ptr<Verbs> verbs();

  // ---- for the objects that verbs() leads to
  struct Pinned {
    std::uint64_t start = 0;
    std::size_t bytes = 0;
    std::string device;
  };
  std::uint32_t pin(const std::string& device, std::uint64_t start, std::size_t bytes);
  void unpin(std::uint32_t key);
  std::uint32_t add(FakeQueuePair* pair);
  void remove(FakeQueuePair* pair);
  std::uint32_t post(FakeQueuePair& from, const Write& write);
  void deliver_some();
  void deliver_all();
  std::optional<Event> next_event(const std::string& device);
  std::mutex& mutex() { return mutex_; }

 private:
  bool holds(std::uint32_t key, const std::string& device, std::uint64_t start, std::size_t bytes) const;
  bool deliver_one(FakeQueuePair& from);
  void end(FakeQueuePair& from, const Write& write, Outcome how);

  std::mutex mutex_;
  std::uint32_t last_number_ = 0x100;
  std::map<std::uint32_t, Pinned> regions_;        // by key
  std::map<std::uint32_t, FakeQueuePair*> pairs_;  // by number
  std::multimap<std::string, Event> events_;
  Tally tally_;
  std::uint64_t draws_ = 1;
};

}  // namespace shoal::transports::verbs
