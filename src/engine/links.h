// SPDX-License-Identifier: Apache-2.0
// The links of one rank, found in two loads once they are made; asked of the switchboard until then. Owned by the engine, one
// thread.
#pragma once

#include <vector>

#include "link/switchboard.h"

namespace shoal::engine {

class Links {
 public:
  Links(link::Switchboard& switchboard, World world, int channels)
      : switchboard_(switchboard),
        by_channel_(static_cast<std::size_t>(channels), std::vector<link::Link*>(static_cast<std::size_t>(world.value))) {}

  // Null while the link is being made, or if it cannot be: see failure().
  link::Link* get(Rank peer, int channel) {
    link::Link* found = by_channel_[static_cast<std::size_t>(channel)][static_cast<std::size_t>(peer.value)];
    return found != nullptr ? found : make(peer, channel);
  }

  const Status& failure() const { return failure_; }
  link::Switchboard& switchboard() { return switchboard_; }
  bool connecting() const { return connecting_; }

  // Moves what needs this thread to move: links in the making, and the bytes of links that need progress.
  void progress() {
    if (connecting_) switchboard_.progress();
    for (link::Link* each : needing_progress_) each->progress();
    connecting_ = false;  // get() says so again if it is still true
  }
  // True if nothing sent is still inside this rank.
  bool flushed() const {
    for (link::Link* each : needing_progress_)
      if (!each->flushed()) return false;
    return true;
  }
  // The others do no more than ring the doorbell.
  const std::vector<link::Link*>& needing_progress() const { return needing_progress_; }

 private:
  link::Link* make(Rank peer, int channel) {
    connecting_ = true;
    Result<link::Link*> made = switchboard_.link(peer, channel);
    if (!made.is_ok()) {
      failure_ = made.status();
      return nullptr;
    }
    if (*made == nullptr) return nullptr;
    by_channel_[static_cast<std::size_t>(channel)][static_cast<std::size_t>(peer.value)] = *made;
    if ((*made)->needs_progress()) needing_progress_.push_back(*made);
    return *made;
  }

  link::Switchboard& switchboard_;
  std::vector<std::vector<link::Link*>> by_channel_;  // [channel][peer]
  std::vector<link::Link*> needing_progress_;
  Status failure_;
  bool connecting_ = false;
};

}  // namespace shoal::engine
