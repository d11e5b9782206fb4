// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/transport.h"

#include <unistd.h>

#include <utility>

#include "core/conf_file.h"
#include "core/log.h"
#include "transports/verbs/connection.h"

namespace shoal::transports {

VerbsTransport::VerbsTransport() : VerbsTransport(verbs::open_ibverbs, parse_ib_options(variable)) {}

VerbsTransport::VerbsTransport(Opener open, Result<IbOptions> options) : open_(std::move(open)), options_(std::move(options)) {}

bool VerbsTransport::reaches(const link::Endpoint& self, const link::PeerIdentity& peer) const {
  const bool same_host = self.self.host_id == peer.host_id;
  if (same_host && !self.shm_disable) return false;
  if (!options_.is_ok() || options_->disable) return false;  // options that are malformed have been reported by init
  std::call_once(looked_, [this] { look_for_ports(); });
  return !ports_.empty();
}

void VerbsTransport::look_for_ports() const {
  std::string why;
  Result<std::unique_ptr<verbs::Verbs>> verbs = open_();
  if (verbs.is_ok()) {
    verbs_ = verbs.take();
    ports_ = verbs::usable_ports(*verbs_, *options_, why);
  } else {
    why = verbs.status().text();
  }
  double all = 0;
  for (const verbs::UsablePort& port : ports_) all += port.facts.bandwidth_Bps;
  if (all > 0) bandwidth_Bps_.store(all, std::memory_order_relaxed);
  if (ports_.empty()) log::info(log::Subsystem::net, -1, "verbs: not used: {}", why);
  for (const verbs::UsablePort& port : ports_)
    log::info(log::Subsystem::net, -1, "verbs: {}:{}, {}, {:.1f} GB/s, packets of {}, GID index {}", port.device, port.number,
              port.facts.ethernet ? "RoCE" : "InfiniBand", port.facts.bandwidth_Bps / 1e9, port.facts.mtu, port.gid.index);
}

std::unique_ptr<link::Connection> VerbsTransport::connect(const link::Endpoint& self, const link::PeerIdentity& peer, int channel,
                                                          link::Descriptor stream, bool /*connecting*/) {
  return std::make_unique<VerbsConnection>(self, peer, channel, std::move(stream), open_rails(), *options_);
}

Result<std::vector<verbs::Rail>> VerbsTransport::open_rails() {
  if (ports_.empty()) return fail(Code::system_error, "there is no port that may be used");
  std::vector<verbs::Rail> rails;
  for (const verbs::UsablePort& port : ports_) {
    Result<std::shared_ptr<verbs::Device>> opened = device(port.device);
    if (!opened.is_ok()) return opened.status();
    rails.push_back({.device = opened.take(), .port = port});
  }
  return rails;
}

Result<std::shared_ptr<verbs::Device>> VerbsTransport::device(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (process_ != ::getpid()) devices_.clear();
  process_ = ::getpid();
  if (std::shared_ptr<verbs::Device> known = devices_[name].lock()) return known;
  Result<std::unique_ptr<verbs::Context>> context = verbs_->open(name);
  if (!context.is_ok()) return fail(context.status().code(), "{}: {}", name, context.status().text());
  auto opened = std::make_shared<verbs::Device>(name, context.take());
  devices_[name] = opened;
  return opened;
}

}  // namespace shoal::transports
