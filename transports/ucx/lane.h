// SPDX-License-Identifier: Apache-2.0
// One end of a link as the worker sees it: both halves, the number under which messages come, and the path that they go. Outlives
// its link for as long as UCX works on something of it. Driven by the worker's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/types.h"
#include "transports/ucx/receiver.h"
#include "transports/ucx/sender.h"
#include "transports/ucx/worker.h"

namespace shoal::transports::ucx {

class Lane {
 public:
  // `number`: random; how the peer addresses this end.
  Lane(Worker& worker, std::uint64_t number, Bytes max_message, int credits)
      : worker_(worker), number_(number), sender_(worker.api(), max_message, credits), receiver_(worker, max_message, credits) {}

  std::uint64_t number() const { return number_; }
  Sender& sender() { return sender_; }
  Receiver& receiver() { return receiver_; }
  const Receiver& receiver() const { return receiver_; }

  // Sends the greeting over `path` to the peer's end `peers_number`.
  void open(std::shared_ptr<Path> path, std::uint64_t peers_number) {
    path_ = std::move(path);
    sender_.open(path_->endpoint(), peers_number);
    sender_.greet();
  }
  // The peer's greeting has come.
  bool is_greeted() const { return greeted_; }
  // Why nothing passes any more; UCS_OK: something may.
  ucs_status_t failure() const {
    if (path_ != nullptr && path_->failure() != UCS_OK) return path_->failure();
    return sender_.failure() != UCS_OK ? sender_.failure() : receiver_.failure();
  }

  // For the worker: a message that came; what is left for outside of callbacks; the end.
  ucs_status_t take(const FrameHeader& header, void* data, std::size_t bytes, std::uint64_t how);
  void move() { receiver_.move(); }
  void drop() { receiver_.drop(); }
  bool is_idle() const { return sender_.is_idle() && receiver_.is_idle(); }
  void leave_path() { path_.reset(); }

 private:
  Worker& worker_;
  std::uint64_t number_;
  Sender sender_;
  Receiver receiver_;
  std::shared_ptr<Path> path_;
  bool greeted_ = false;
};

}  // namespace shoal::transports::ucx
