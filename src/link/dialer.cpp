// SPDX-License-Identifier: Apache-2.0
#include "link/dialer.h"

#include <poll.h>

#include <algorithm>

#include "core/expects.h"
#include "core/log.h"
#include "link/hello.h"
#include "link/interfaces.h"

namespace shoal::link {
namespace {

// A refused connect is tried again after pauses. A peer's listener is open before its address is known, so that this only bridges
// a full backlog, or a stranger's crowd at the door; it must not hide a death for long.
constexpr int kRounds = 3;  // through the addresses of a peer that has several
// Where there is another address to try, one that keeps silent is left after this.
constexpr std::chrono::milliseconds kSilence{1'000};

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

std::vector<std::string> Dialer::addresses() const {
  std::vector<std::string> all;
  if (transports_[index_]->carrier() == Carrier::local) all.push_back(peer_.local_address);
  if (transports_[index_]->carrier() == Carrier::network)
    for (const std::string& each : addresses_in(peer_.address))
      for (std::string& scoped : with_own_scopes(each, scope_of(self_.self.address))) all.push_back(std::move(scoped));
  if (all.empty()) all.emplace_back();
  return all;
}

std::string Dialer::via() const { return address().empty() ? std::string() : fmt::format(" via {}", address()); }

// Begins with transports_[index_].
void Dialer::start() {
  addresses_ = addresses();
  where_ = 0;
  tries_ = 1;
  round_.clear();
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
    const auto patience = addresses_.size() > 1 ? kSilence : std::chrono::milliseconds(0);
    Result<Descriptor> stream =
        transport().carrier() == Carrier::local ? start_connect_local(address()) : start_connect_tcp(address(), patience);
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

// What this try came to: the next address, the same ones again after a pause, else the next transport, else the end.
void Dialer::give_up(const Status& why) {
  round_ += fmt::format("{}{}{}: {}", round_.empty() ? "" : "; ", transport().name(), via(), why.text());
  if (try_again(why)) return;
  tried_ += (tried_.empty() ? "" : "; ") + round_;
  last_code_ = why.code();
  stage_ = Pausing();
  if (++index_ == transports_.size()) return;
  log::info(self_.self.rank.value, "rank {} (channel {}) cannot be reached by {}{} ({}); going on with {}", peer_.rank.value,
            channel_, transports_[index_ - 1]->name(), via(), why.text(), transport().name());
  start();
}

// Refused connects, and handshakes that the peer dropped because it had too many at once; whatever it was, if there is another
// address.
bool Dialer::try_again(const Status& why) {
  const bool refused = std::holds_alternative<Pausing>(stage_) || std::holds_alternative<Connecting>(stage_);
  const bool dropped = std::holds_alternative<Handshake>(stage_);
  if ((!refused && !dropped) || address().empty()) return false;
  const bool several = addresses_.size() > 1;
  const bool worth_it = several || (refused && why.code() == Code::system_error) || (dropped && why.code() == Code::remote_error);
  const bool round_ends = where_ + 1 == addresses_.size();
  if (!worth_it || (round_ends && tries_ >= (several ? std::min(kRounds, self_.connects) : self_.connects))) return false;
  if (round_ends) {
    pause_until_ = Timer::Clock::now() + tries_ * self_.connect_pause;
    timer_.set(pause_until_);
    ++tries_;
    round_.clear();
  }
  where_ = round_ends ? 0 : where_ + 1;
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
