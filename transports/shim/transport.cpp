// SPDX-License-Identifier: Apache-2.0
#include "transports/shim/transport.h"

#include <algorithm>
#include <utility>

#include "transports/shim/link.h"

namespace shoal::transports {
namespace {

// What a wire without a bandwidth may hold.
constexpr double kMostHeld = 64 << 20;

// Taken out ahead of time: what the wire holds, and as much again as the inner link does.
Bytes most_held(const Shim& shim, const link::Endpoint& self) {
  const double seconds = std::chrono::duration<double>(shim.latency + shim.jitter).count();
  const double on_wire = std::min(kMostHeld, seconds > 0 ? seconds * shim.bandwidth_Bps : 0.0);
  return {static_cast<std::size_t>(on_wire) + self.max_message.value * static_cast<std::size_t>(self.credits) + 1};
}

}  // namespace

// Slows the link that the inner connection makes.
class ShimmedTransports::Making final : public link::Connection {
 public:
  Making(ShimmedTransports& owner, const link::Endpoint& self, const link::PeerIdentity& peer,
         std::unique_ptr<link::Connection> inner)
      : owner_(owner), self_(self), peer_(peer), inner_(std::move(inner)) {}

  Result<std::unique_ptr<link::Link>> progress() override {
    Result<std::unique_ptr<link::Link>> made = inner_->progress();
    if (!made.is_ok() || *made == nullptr) return made;
    return owner_.slow(made.take(), self_, peer_);
  }
  link::Wakeup wakeup() const override { return inner_->wakeup(); }

 private:
  ShimmedTransports& owner_;
  const link::Endpoint& self_;
  link::PeerIdentity peer_;
  std::unique_ptr<link::Connection> inner_;
};

class ShimmedTransports::Shimmed final : public link::Transport {
 public:
  Shimmed(ShimmedTransports& owner, link::Transport& inner) : owner_(owner), inner_(inner) {}

  std::string_view name() const override { return inner_.name(); }
  link::Carrier carrier() const override { return inner_.carrier(); }
  bool reaches(const link::Endpoint& self, const link::PeerIdentity& peer) const override { return inner_.reaches(self, peer); }

  link::Capabilities capabilities() const override {
    link::Capabilities slowed = inner_.capabilities();
    slowed.latency_s += std::chrono::duration<double>(owner_.shim_.latency + owner_.shim_.jitter / 2).count();
    slowed.bandwidth_Bps = std::min(slowed.bandwidth_Bps, owner_.shim_.bandwidth_Bps);
    return slowed;
  }

  std::unique_ptr<link::Connection> connect(const link::Endpoint& self, const link::PeerIdentity& peer, int channel,
                                            link::Descriptor stream, bool connecting) override {
    link::Endpoint inside = self;
    inside.max_message.value += kShimTrailer;
    inside.windows.clear();
    return std::make_unique<Making>(owner_, self, peer, inner_.connect(inside, peer, channel, std::move(stream), connecting));
  }

 private:
  ShimmedTransports& owner_;
  link::Transport& inner_;
};

ShimmedTransports::ShimmedTransports(const Shim& shim, std::span<link::Transport* const> inner) : shim_(shim) {
  for (link::Transport* each : inner) {
    shimmed_.push_back(std::make_unique<Shimmed>(*this, *each));
    list_.push_back(shimmed_.back().get());
  }
}

ShimmedTransports::~ShimmedTransports() = default;

std::unique_ptr<link::Link> ShimmedTransports::slow(std::unique_ptr<link::Link> inner, const link::Endpoint& self,
                                                    const link::PeerIdentity& peer) {
  const bool shares_clock = self.self.host_id == peer.host_id;
  return std::make_unique<ShimLink>(std::move(inner), pace_to(self.self.rank, peer.rank), shares_clock, most_held(shim_, self));
}

Pace& ShimmedTransports::pace_to(Rank self, Rank peer) {
  const auto direction = (static_cast<std::uint64_t>(self.value) << 32) | static_cast<std::uint64_t>(peer.value);
  return paces_.try_emplace(peer, shim_, direction).first->second;
}

}  // namespace shoal::transports
