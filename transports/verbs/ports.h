// SPDX-License-Identifier: Apache-2.0
// Which ports of which devices links use: those that NCCL_IB_HCA admits, that have a wire, and an address that peers can find.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ib_options.h"
#include "transports/verbs/face.h"

namespace shoal::transports::verbs {

struct UsablePort {
  std::string device;
  int number = 1;
  PortFacts facts;
  GidEntry gid;
};

// The address of a port: the one at `wanted` in its table, or, for -1, of RoCE the best of v2 with IPv4, v2 with IPv6, v2 with a
// link-local IPv6, then v1; of InfiniBand the first. Nothing if there is no such.
std::optional<GidEntry> choose_gid(std::span<const GidEntry> table, bool ethernet, std::int64_t wanted);

// At most kMaxRails, all with the same kind of wire and equally fast: the fastest. If there is none, `why` says so.
std::vector<UsablePort> usable_ports(Verbs& verbs, const IbOptions& options, std::string& why);

}  // namespace shoal::transports::verbs
