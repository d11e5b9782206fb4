// SPDX-License-Identifier: Apache-2.0
// A rank's place in a group of workers and servers: its identity, its links to all ranks of the other kind, the control plane,
// and the loop that drives an actor (worker or server) over them. The loop sleeps while nothing moves.
//
// Threads: drive() and what it calls belong to one thread at a time. wake(), note_failure(), failure(), abort() and traffic():
// any.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/bootstrap.h"
#include "core/environment.h"
#include "link/switchboard.h"
#include "ps/config.h"
#include "ps/message.h"
#include "ps/settings.h"
#include "ps/traffic.h"
#include "transports/shim/transport.h"

namespace shoal::ps {

using Clock = std::chrono::steady_clock;

// What a fabric drives. Nothing here blocks.
class Actor {
 public:
  virtual ~Actor() = default;
  // Does what can be done now; whether anything moved. An error is the end of the group.
  virtual Result<bool> step() = 0;
  virtual bool finished() = 0;
  // Why this rank's patience is at its end, if it is; asked now and then. `timeout` is above 0.
  virtual Status overdue(Clock::time_point now, std::chrono::milliseconds timeout) = 0;
};

class Fabric {
 public:
  // Collective: returns when all ranks are in and agree.
  static Result<std::unique_ptr<Fabric>> join(const comm::UniqueId& id, Rank rank, const Config& config,
                                              const Environment& environment);
  // Leaves in order, unless the group has failed.
  ~Fabric();

  Rank rank() const { return endpoint_.self.rank; }
  const Config& config() const { return settings_.config; }
  Bytes max_message() const { return settings_.max_message; }

  // Until the actor has finished and everything sent is out; or the failure of the group, which all others are told.
  Status drive(Actor& actor);

  // For the actor. One message to a peer: its header, and `fill` to write `payload` bytes behind it. False: no room now.
  template <typename F>
  bool send(Rank peer, const Header& header, std::size_t payload, F&& fill);
  bool send(Rank peer, const Header& header) {
    return send(peer, header, 0, [](std::span<std::byte>) {});
  }
  // The oldest message from a peer, or null; release it when done with it.
  const link::Message* front(Rank peer);
  void release(Rank peer);
  // Whether news from this peer is to end a sleep. True at first.
  void listen(Rank peer, bool wanted) { line(peer).listening = wanted; }
  // Whether all that was sent has left this rank.
  bool flushed();
  // Nothing more passes: that the peer goes away is no failure.
  void part_from(Rank peer) { line(peer).parted = true; }

  // Ends a sleep of drive(). What it is to find must have been published by a sequentially consistent store.
  void wake();
  // The first failure stays and is returned for good; the other ranks are told.
  Status note_failure(const Status& why);
  Status failure();
  void abort();

  const Traffic& traffic(Rank peer) const { return lines_[static_cast<std::size_t>(peer.value)].traffic; }
  // "rank 3 (node7, pid 4121)"
  std::string describe(Rank peer) const;

 private:
  struct Line {
    link::Link* link = nullptr;
    bool on_descriptor = false;  // it sleeps on a descriptor alone
    bool listening = true;
    bool parted = false;
    std::optional<Clock::time_point> broken_since;
    Traffic traffic;
  };

  Fabric() = default;
  Status join_group(const comm::UniqueId& id, const Config& config, const Environment& environment);
  Line& line(Rank peer) { return lines_[static_cast<std::size_t>(peer.value)]; }
  template <typename F>
  void for_each_peer(F&& f);

  void connect();
  void progress();
  void sleep(const std::function<bool()>& still_nothing, std::chrono::nanoseconds longest);
  void sleep_on_descriptors(std::chrono::nanoseconds longest);
  std::chrono::nanoseconds until_due(std::chrono::nanoseconds longest);
  Status look(Actor& actor, Clock::time_point now);
  Status health(Line& line, Clock::time_point now);

  std::chrono::milliseconds timeout_{0};
  std::optional<link::DoorbellPage> doorbell_;
  link::Descriptor event_;  // wakes a sleep on descriptors
  link::Endpoint endpoint_;
  Settings settings_;
  comm::Agreement agreement_;
  std::unique_ptr<transports::ShimmedTransports> shimmed_;  // null: nothing slows the links
  std::unique_ptr<link::Switchboard> switchboard_;
  std::vector<Line> lines_;  // by rank; only those to the other kind are used
  int connecting_ = 0;       // links that are still to be made
  Status connect_failure_;
  std::optional<Clock::time_point> connect_failed_since_;
  bool any_on_descriptor_ = false;
  bool any_rings_ = false;
  int naps_ = 0;  // in a row, without anything moving

  std::atomic<bool> on_descriptors_{false};  // a sleep there has begun; pairs with wake()
  std::atomic<bool> aborted_{false};
  std::atomic<bool> failed_{false};
  std::mutex failure_mutex_;
  Status failure_;  // under failure_mutex_
};

template <typename F>
bool Fabric::send(Rank peer, const Header& header, std::size_t payload, F&& fill) {
  Line& to = line(peer);
  if (to.link == nullptr) return false;
  const std::span<std::byte> message = to.link->acquire({kHeader + payload});
  if (message.data() == nullptr) return false;
  put(header, message);
  fill(message.subspan(kHeader));
  to.traffic.sent.count(payload, kHeader);  // first: whoever has the message may ask what was sent
  to.link->commit(kTag);
  return true;
}

}  // namespace shoal::ps
