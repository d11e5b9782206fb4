// SPDX-License-Identifier: Apache-2.0
#include "comm/root_connection.h"

#include <poll.h>

#include <utility>
#include <vector>

#include "comm/condition.h"

namespace shoal::comm {
namespace {

constexpr int kByeTime_ms = 100;  // a "bye" that finds the socket full waits at most so long

}  // namespace

Notice to_notice(const Status& why) {
  const Code code = why.is_ok() || why.code() == Code::in_progress ? Code::internal_error : why.code();
  return {code, why.culprit() ? why.culprit()->value : -1, std::string(why.text())};
}

Status to_status(const Notice& notice) {
  return {notice.code, notice.text, notice.culprit >= 0 ? std::optional(Rank{notice.culprit}) : std::nullopt};
}

// What was said last still leaves; and nothing unread remains, which would turn the close into a reset.
RootConnection::~RootConnection() {
  unwatch(*this);
  const std::scoped_lock lock(mutex_);
  channel_.progress();
}

Status RootConnection::start() { return watch(*this); }

Status RootConnection::progress() {
  const std::scoped_lock lock(mutex_);
  pump();
  return failure_;
}

void RootConnection::serve() {
  const std::scoped_lock lock(mutex_);
  pump();
}

void RootConnection::dump() {
  const std::scoped_lock lock(mutex_);
  if (listener_.dump) listener_.dump();
}

void RootConnection::listen(Listener listener) {
  const std::scoped_lock lock(mutex_);
  listener_ = std::move(listener);
}

void RootConnection::announce_failure(const Status& why) {
  if (!why.is_ok()) say(to_notice(why));
}

void RootConnection::raise_alarm(Alarm alarm, std::uint64_t sequence, const Status& own) {
  say(Alarmed{.alarm = alarm, .sequence = sequence, .own = to_notice(own)});
}

Status RootConnection::unanswered(const Status& own) const {
  const std::scoped_lock lock(mutex_);
  if (root_left_ || !failure_.is_ok()) return own;
  const std::string who = root_ ? describe(*root_) + ", where the root service is," : "the process that made the unique id";
  const std::string condition = root_ && of_this_host_ ? condition_of_process(root_->pid) : std::string();
  return {Code::remote_error,
          fmt::format("{} does not answer: {}; here: {}", who,
                      condition.empty() ? "it is stopped or cut off from the network, or this rank is" : condition, own.text()),
          root_ ? std::optional(root_->rank) : std::nullopt};
}

void RootConnection::announce_abort() { say(Abort{}); }

void RootConnection::bye(std::uint64_t finished) {
  const std::scoped_lock lock(mutex_);
  if (said_bye_) return;
  pump();  // a failure that is here already counts
  said_bye_ = true;
  channel_.send(Bye{-1, finished});
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
  if (!channel_.flushed()) look_again();
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
      fail_with(message.status());
    else
      hear(*message);
  }
  channel_.flush();
  if (failure_.is_ok() && channel_.closed() && !root_left_) fail_with(root_died());
}

void RootConnection::hear(const Message& message) {
  if (const auto* notice = std::get_if<Notice>(&message)) {
    fail_with(to_status(*notice));
  } else if (const auto* inquiry = std::get_if<Inquiry>(&message)) {
    Report report = listener_.answer ? listener_.answer(inquiry->sequence) : Report();
    report.inquiry = inquiry->number;
    channel_.send(report);
  } else if (std::holds_alternative<Bye>(message)) {
    root_left_ = true;
  } else {
    fail_with(fail(Code::internal_error, "unexpected message {} from the root service at {}", message.index(), root_address_));
  }
}

void RootConnection::fail_with(Status why) {
  failure_ = std::move(why);
  has_failed_.store(true, std::memory_order_release);
  if (listener_.news) listener_.news();
}

Status RootConnection::root_died() const {
  if (root_)
    return {Code::remote_error, fmt::format("{} died (it made the unique id, at {})", describe(*root_), root_address_),
            root_->rank};
  return fail(Code::remote_error, "the process that made the unique id at {} died", root_address_);
}

}  // namespace shoal::comm
