// SPDX-License-Identifier: Apache-2.0
// What a rank tells the others of its host: as much of its topology as plans depend on. Hosts may look unlike, or be described by
// unlike files: all ranks plan by what all have told, so they plan alike. Value type.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/topo_options.h"
#include "core/types.h"
#include "topo/host.h"

namespace shoal::comm {

struct HostView {
  // Of the fastest network interface, or of the RDMA ports that one rank uses together, if they are faster; 0: not known.
  std::int64_t network_Mbps = 0;
  // Number of the NUMA node that has all processors which this process may use; -1: several have some, or not known.
  int node = -1;
  friend bool operator==(const HostView&, const HostView&) = default;
};

// Interfaces and ports that are not known to be down. Of ports, those that NCCL_IB_DISABLE and NCCL_IB_HCA leave.
HostView view_of(const topo::Host& host);

// From the file that NCCL_TOPO_FILE names, else from the machine. What is missing there is not known; a file that cannot be read,
// or is none, is an error that names variable, file, line and reason. Writes the file that NCCL_TOPO_DUMP_FILE names, if this
// rank is to: system_error if that fails.
Result<HostView> look_at_host(Rank rank, const TopoOptions& options);
// By this process's variables; the machine is looked at once a process.
Result<HostView> look_at_host(Rank rank);

std::string encode(const HostView& view);
// invalid_usage for what encode does not make: another version of the library. Any bytes may be handed in.
Result<std::vector<HostView>> decode_host_views(std::span<const std::string> texts);

}  // namespace shoal::comm
