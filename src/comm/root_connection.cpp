// SPDX-License-Identifier: Apache-2.0
#include "comm/root_connection.h"

#include <poll.h>

#include <utility>
#include <vector>

namespace shoal::comm {
namespace {

constexpr int kByeTime_ms = 100;  // a "bye" that finds the socket full waits at most so long

}  // namespace

Status to_status(const Notice& notice) {
  return {notice.code, notice.text, notice.culprit >= 0 ? std::optional(Rank{notice.culprit}) : std::nullopt};
}

// What was said last still leaves; and nothing unread remains, which would turn the close into a reset.
RootConnection::~RootConnection() {
  const std::scoped_lock lock(mutex_);
  channel_.progress();
}

Status RootConnection::progress() {
  const std::scoped_lock lock(mutex_);
  pump();
  return failure_;
}

void RootConnection::announce_failure(const Status& why) {
  if (why.is_ok()) return;
  const Code code = why.code() == Code::in_progress ? Code::internal_error : why.code();
  say(Notice{code, why.culprit() ? why.culprit()->value : -1, std::string(why.text())});
}

void RootConnection::announce_abort() { say(Abort{}); }

void RootConnection::bye() {
  const std::scoped_lock lock(mutex_);
  if (said_bye_) return;
  pump();  // a failure that is here already counts
  said_bye_ = true;
  channel_.send(Bye{});
  channel_.progress();
  if (channel_.flushed() || channel_.closed()) return;
  pollfd waiting{channel_.wakeup().descriptor, POLLOUT, 0};
  (void)poll(&waiting, 1, kByeTime_ms);
  channel_.progress();
}

link::Wakeup RootConnection::wakeup() const {
  const std::scoped_lock lock(mutex_);
  return channel_.wakeup();
}

void RootConnection::say(const Message& message) {
  const std::scoped_lock lock(mutex_);
  if (said_bye_) return;
  channel_.send(message);
  pump();
}

void RootConnection::pump() {
  if (channel_.closed()) return;
  channel_.progress();
  if (said_bye_ || !failure_.is_ok()) return;
  while (failure_.is_ok()) {
    const Result<std::optional<std::vector<std::byte>>> payload = channel_.next();
    if (payload.is_ok() && !payload->has_value()) break;
    const Result<Message> message = payload.is_ok() ? decode(**payload) : payload.status();
    if (!message.is_ok())
      failure_ = message.status();
    else
      hear(*message);
  }
  if (failure_.is_ok() && channel_.closed() && !root_left_) failure_ = root_died();
}

void RootConnection::hear(const Message& message) {
  if (const auto* notice = std::get_if<Notice>(&message))
    failure_ = to_status(*notice);
  else if (std::holds_alternative<Bye>(message))
    root_left_ = true;
  else
    failure_ = fail(Code::internal_error, "unexpected message {} from the root service at {}", message.index(), root_address_);
}

Status RootConnection::root_died() const {
  if (root_)
    return {Code::remote_error, fmt::format("{} died (it made the unique id, at {})", describe(*root_), root_address_),
            root_->rank};
  return fail(Code::remote_error, "the process that made the unique id at {} died", root_address_);
}

}  // namespace shoal::comm
