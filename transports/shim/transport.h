// SPDX-License-Identifier: Apache-2.0
// The transports as a Shim slows them: each of a list, decorated, under its own name, for one rank of one communicator. Both ends
// of a link must be slowed, or neither. Between two ranks and in one direction all channels share one wire.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/shim.h"
#include "link/link.h"
#include "transports/shim/pace.h"

namespace shoal::transports {

class ShimmedTransports {
 public:
  // The inner transports outlive it; it outlives all links, and the endpoint that connect() is called with outlives the
  // connections. Driven by the thread that drives the links.
  ShimmedTransports(const Shim& shim, std::span<link::Transport* const> inner);
  ShimmedTransports(const ShimmedTransports&) = delete;
  ShimmedTransports& operator=(const ShimmedTransports&) = delete;
  ~ShimmedTransports();

  // In the order of the inner ones.
  std::span<link::Transport* const> transports() const { return list_; }

 private:
  class Shimmed;
  class Making;

  std::unique_ptr<link::Link> slow(std::unique_ptr<link::Link> inner, const link::Endpoint& self, const link::PeerIdentity& peer);
  Pace& pace_to(Rank self, Rank peer);

  Shim shim_;
  std::map<Rank, Pace> paces_;
  std::vector<std::unique_ptr<Shimmed>> shimmed_;
  std::vector<link::Transport*> list_;
};

}  // namespace shoal::transports
