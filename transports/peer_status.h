// SPDX-License-Identifier: Apache-2.0
// How every transport speaks of a peer in trouble: one sentence that names its rank, host and process, and the rank as culprit.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "core/status.h"
#include "link/link.h"

namespace shoal::transports {

// "rank 3 (node7, pid 4121) left or died (shm)"
template <typename... Args>
Status peer_failure(std::string_view transport, const link::PeerIdentity& peer, fmt::format_string<Args...> what,
                    Args&&... args) {
  return {Code::remote_error,
          fmt::format("rank {} ({}, pid {}) {} ({})", peer.rank.value, peer.host, peer.pid,
                      fmt::format(what, std::forward<Args>(args)...), transport),
          peer.rank};
}

}  // namespace shoal::transports
