// SPDX-License-Identifier: Apache-2.0
// Links over UCX's UCP: over whatever UCX finds between two ranks, and UCX_TLS allows. Only for those who ask (NCCL_NET=UCX):
// shared memory, InfiniBand and TCP have transports of Shoal's own, which need no library; UCX brings fabrics that those do not
// know. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "link/link.h"
#include "transports/ucx/worker.h"

namespace shoal::transports {

class UcxTransport final : public link::Transport {
 public:
  using Open = std::function<Result<ucx::Api>()>;
  // The process's own: loads UCX when it is first asked for.
  UcxTransport();
  // Another UCX, always wanted: for tests.
  explicit UcxTransport(Open open) : open_(std::move(open)), wanted_(true) {}

  std::string_view name() const override { return "ucx"; }
  link::Capabilities capabilities() const override { return {.latency_s = 20e-6, .bandwidth_Bps = 3e9, .overhead_s = 6e-6}; }
  link::Carrier carrier() const override { return link::Carrier::network; }
  bool reaches(const link::Endpoint& self, const link::PeerIdentity& peer) const override;
  std::unique_ptr<link::Connection> connect(const link::Endpoint& self, const link::PeerIdentity& peer, int channel,
                                            link::Descriptor stream, bool connecting) override;

 private:
  // One rank of one communicator in this process: the thread that drives its links is one.
  using Owner = std::tuple<std::uint64_t, std::int32_t, const void*>;  // communicator, rank, doorbell

  bool is_wanted() const;
  // Null: UCX is not here, which is said once.
  const ucx::Api* api() const;
  Result<std::shared_ptr<ucx::Worker>> worker_of(const link::Endpoint& self);

  Open open_;
  bool wanted_ = false;
  mutable std::mutex mutex_;
  mutable std::optional<Result<ucx::Api>> api_;
  // While there are links: gone with the last.
  std::weak_ptr<ucx::Context> context_;
  std::map<Owner, std::weak_ptr<ucx::Worker>> workers_;
};

}  // namespace shoal::transports
