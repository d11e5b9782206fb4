// SPDX-License-Identifier: Apache-2.0
// The control plane over a rank's connection to the root service. Any thread: one lock, held while bytes move.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "comm/channel.h"
#include "comm/control.h"
#include "comm/messages.h"
#include "comm/watcher.h"

namespace shoal::comm {

class RootConnection final : public Control, private Watched {
 public:
  // `root`: the first rank of the process that the root service lives in, if one does; `of_this_host`: that one is.
  RootConnection(Channel channel, std::string root_address, std::optional<link::PeerIdentity> root, bool of_this_host)
      : channel_(std::move(channel)),
        root_address_(std::move(root_address)),
        root_(std::move(root)),
        of_this_host_(of_this_host) {}
  ~RootConnection() override;

  // From now on the process's watcher listens to it, too.
  Status start();

  Status progress() override;
  void announce_failure(const Status& why) override;
  void announce_abort() override;
  void raise_alarm(Alarm alarm, std::uint64_t sequence, const Status& own) override;
  Status unanswered(const Status& own) const override;
  void bye(std::uint64_t finished) override;
  link::Wakeup wakeup() const override;
  bool has_news() const override { return has_failed_.load(std::memory_order_acquire); }
  void listen(Listener listener) override;

 private:
  void serve() override;
  void dump() override;
  void fail_with(Status why);
  void pump();
  void hear(const Message& message);
  void say(const Message& message);
  Status root_died() const;

  mutable std::mutex mutex_;  // of all that follows
  Channel channel_;
  const std::string root_address_;
  const std::optional<link::PeerIdentity> root_;
  const bool of_this_host_;
  Status failure_;          // the first, for good
  bool said_bye_ = false;   // from then on nothing is an alarm
  bool root_left_ = false;  // in order: its silence means nothing
  Listener listener_;
  std::atomic<bool> has_failed_{false};  // failure_ is set; pairs with mutex_
};

// What a failure is on its way to others. A success, or something in progress, is none: internal_error.
Notice to_notice(const Status& why);
// What a notice is for the rank that gets it.
Status to_status(const Notice& notice);

}  // namespace shoal::comm
