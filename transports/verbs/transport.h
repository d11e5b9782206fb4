// SPDX-License-Identifier: Apache-2.0
// Links over InfiniBand verbs (InfiniBand and RoCE), between hosts, and within a host where shared memory is switched off.
// Devices are looked for when a link is first thought of, and open while links use them. Any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/ib_options.h"
#include "link/link.h"
#include "transports/verbs/device.h"
#include "transports/verbs/face.h"
#include "transports/verbs/ports.h"
#include "transports/verbs/queues.h"

namespace shoal::transports {

class VerbsTransport final : public link::Transport {
 public:
  // This machine's, as NCCL_IB_* say.
  VerbsTransport();
  // For tests: other devices, other options.
  using Opener = std::function<Result<std::unique_ptr<verbs::Verbs>>()>;
  VerbsTransport(Opener open, Result<IbOptions> options);

  std::string_view name() const override { return "verbs"; }
  link::Capabilities capabilities() const override {
    return {.latency_s = 3e-6, .bandwidth_Bps = bandwidth_Bps_.load(std::memory_order_relaxed), .overhead_s = 0.5e-6};
  }
  link::Carrier carrier() const override { return link::Carrier::network; }
  // A peer without devices says so in the handshake.
  bool reaches(const link::Endpoint& self, const link::PeerIdentity& peer) const override;
  std::unique_ptr<link::Connection> connect(const link::Endpoint& self, const link::PeerIdentity& peer, int channel,
                                            link::Descriptor stream, bool connecting) override;

 private:
  void look_for_ports() const;
  Result<std::vector<verbs::Rail>> open_rails();
  Result<std::shared_ptr<verbs::Device>> device(const std::string& name);

  const Opener open_;
  const Result<IbOptions> options_;
  mutable std::once_flag looked_;
  mutable std::unique_ptr<verbs::Verbs> verbs_;      // null: there is none
  mutable std::vector<verbs::UsablePort> ports_;     // empty: nothing is reached
  mutable std::atomic<double> bandwidth_Bps_{12e9};  // of all ports together, once looked at
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<verbs::Device>> devices_;  // under mutex_: those that links use
  pid_t process_ = 0;                                            // under mutex_: whose they are; a fork's child has none
};

}  // namespace shoal::transports
