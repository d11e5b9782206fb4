// SPDX-License-Identifier: Apache-2.0
// Where a communicator has several root services: the way of one of the others to the first, which knows all ranks. It passes on
// the records of its own ranks, those that came together as one message, and whatever else a rank would tell its root. One owner,
// one thread, nothing blocks.
#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "comm/approach.h"
#include "comm/channel.h"
#include "comm/messages.h"
#include "comm/unique_id.h"
#include "core/status.h"

namespace shoal::comm {

class Upstream {
 public:
  // `first`: the id of the first service. `here`: this one's addresses, for texts there.
  Upstream(const UniqueId& first, std::string here);

  const std::string& address() const { return address_; }
  bool is_to(const UniqueId& first) const { return first.key == key_; }

  // The record leaves with the next flush.
  void forward(const Record& record);
  // After what was forwarded before; kept until there is a connection.
  void send(const Message& message);

  // What the first service says. A failure, once: it cannot be reached, has died, or sends nonsense; `left` is no failure.
  Status progress(std::vector<Message>& heard);
  void flush();
  bool reached() const { return channel_.has_value(); }
  bool flushed() const { return !channel_ || channel_->closed() || channel_->flushed(); }
  bool closed() const { return ended_; }

  void add_to(std::vector<pollfd>& polled) const;
  // Until progress() must be called although nothing polls; -1: never.
  int sleep_ms() const { return channel_ || ended_ ? -1 : approaching_.sleep_ms(); }

 private:
  Status end(const Status& why);

  const std::string address_, here_;
  const link::Key key_;
  Approaching approaching_;
  std::optional<Channel> channel_;
  std::vector<Record> records_;    // not sent yet
  std::vector<Message> messages_;  // for when there is a connection
  bool left_ = false;              // the first service has said bye
  bool ended_ = false;
};

}  // namespace shoal::comm
