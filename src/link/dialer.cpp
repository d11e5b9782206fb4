// SPDX-License-Identifier: Apache-2.0
#include "link/dialer.h"

#include <poll.h>

#include "core/expects.h"
#include "core/log.h"
#include "link/hello.h"

namespace shoal::link {
namespace {

// A refused connect is tried again after pauses of 20, 40, ... ms: 0.9 s in all for a carrier. A peer's listener is open before
// its address is known, so that this only bridges a full backlog, or a stranger's crowd at the door; it must not hide a death for
// long.
constexpr int kMaxTries = 10;
constexpr std::chrono::milliseconds kPauseStep{20};

}  // namespace

Dialer::Dialer(const Endpoint& self, const PeerIdentity& peer, int channel, const Key& key, std::vector<Transport*> transports)
    : self_(self), peer_(peer), channel_(channel), key_(key), transports_(std::move(transports)) {
  expects(!transports_.empty(), "a dialer has a transport to try");
  start();
}

Result<std::unique_ptr<Link>> Dialer::progress() {
  // Each turn of this loop enters another stage, try or transport; a stage that can't go on leaves it.
  while (index_ < transports_.size()) {
    const std::size_t stage = stage_.index();
    const Status done = step();
    if (link_) return std::move(link_);
    if (!done.is_ok())
      give_up(done);
    else if (stage_.index() == stage)
      return std::unique_ptr<Link>();
  }
  return nothing_left();
}

Wakeup Dialer::wakeup() const {
  if (const auto* connecting = std::get_if<Connecting>(&stage_)) return {connecting->stream.get(), POLLOUT, false};
  if (const auto* handshake = std::get_if<Handshake>(&stage_)) return handshake->wakeup();
  if (const auto* making = std::get_if<Making>(&stage_)) return (*making)->wakeup();
  return timer_.wakeup();
}

const std::string& Dialer::address() const {
  static const std::string none;
  switch (transports_[index_]->carrier()) {
    case Carrier::none: return none;
    case Carrier::local: return peer_.local_address;
    case Carrier::network: return peer_.address;
  }
  return none;
}

// Begins with transports_[index_].
void Dialer::start() {
  tries_ = 0;
  pause_until_ = {};
  if (transport().carrier() == Carrier::none)
    stage_ = transport().connect(self_, peer_, channel_, Descriptor(), true);
  else
    stage_ = Pausing();
}

Status Dialer::step() {
  if (std::holds_alternative<Pausing>(stage_)) {
    if (Timer::Clock::now() < pause_until_) return {};
    timer_.set(std::nullopt);
    if (address().empty()) return fail(Code::invalid_usage, "the peer has no such listener");
    ++tries_;
    Result<Descriptor> stream =
        transport().carrier() == Carrier::local ? start_connect_local(address()) : start_connect_tcp(address());
    if (!stream.is_ok()) return stream.status();
    stage_ = Connecting{stream.take()};
    return {};
  }
  if (std::holds_alternative<Connecting>(stage_)) return step_connect();
  if (std::holds_alternative<Handshake>(stage_)) return step_handshake();
  Result<std::unique_ptr<Link>> made = std::get<Making>(stage_)->progress();
  if (!made.is_ok()) return made.status();
  link_ = made.take();
  return {};
}

Status Dialer::step_connect() {
  Descriptor& stream = std::get<Connecting>(stage_).stream;
  const Result<bool> connected = connect_finished(stream, address());
  if (!connected.is_ok()) return connected.status();
  if (!*connected) return {};
  const Hello hello{self_.communicator, self_.self.rank, peer_.rank, channel_, std::string(transport().name())};
  Descriptor connected_stream = std::move(stream);
  stage_ = Handshake::client(std::move(connected_stream), key_, hello.encode());
  return {};
}

Status Dialer::step_handshake() {
  Handshake& handshake = std::get<Handshake>(stage_);
  const Result<bool> proven = handshake.progress();
  if (!proven.is_ok()) return proven.status();
  if (!*proven) return {};
  stage_ = transport().connect(self_, peer_, channel_, handshake.take_stream(), true);
  return {};
}

// What this transport's try came to: the same again after a pause, else the next transport, else the end.
void Dialer::give_up(const Status& why) {
  if (try_again(why)) return;
  const std::string via = address().empty() ? std::string() : fmt::format(" via {}", address());
  tried_ += fmt::format("{}{}{}: {}", tried_.empty() ? "" : "; ", transport().name(), via, why.text());
  last_code_ = why.code();
  stage_ = Pausing();
  if (++index_ == transports_.size()) return;
  log::info(self_.self.rank.value, "rank {} (channel {}) cannot be reached by {}{} ({}); going on with {}", peer_.rank.value,
            channel_, transports_[index_ - 1]->name(), via, why.text(), transport().name());
  start();
}

// Refused connects, and handshakes that the peer dropped because it had too many at once.
bool Dialer::try_again(const Status& why) {
  const bool refused = std::holds_alternative<Pausing>(stage_) || std::holds_alternative<Connecting>(stage_);
  const bool dropped = std::holds_alternative<Handshake>(stage_);
  const bool worth_it = (refused && why.code() == Code::system_error) || (dropped && why.code() == Code::remote_error);
  if (!worth_it || tries_ == 0 || tries_ >= kMaxTries) return false;
  pause_until_ = Timer::Clock::now() + tries_ * kPauseStep;
  timer_.set(pause_until_);
  stage_ = Pausing();
  return true;
}

Status Dialer::nothing_left() const {
  const Code code = last_code_ == Code::system_error ? Code::system_error : Code::remote_error;
  return {code,
          fmt::format("rank {} cannot reach rank {} ({}, pid {}) on channel {}: {}", self_.self.rank.value, peer_.rank.value,
                      peer_.host, peer_.pid, channel_, tried_),
          peer_.rank};
}

}  // namespace shoal::link
