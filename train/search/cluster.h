// SPDX-License-Identifier: Apache-2.0
// The machine that a plan is searched for: hosts of equal devices. As JSON, in the words of shoal-plan's cluster files as far as
// they go, and what a device is:
//
//   {
//     "name": "two hosts", "hosts": 2, "ranks_per_host": 4,
//     "within": {"latency_s": 5e-6, "bandwidth_Bps": 1e11},      of a device, each direction, to others of its host
//     "nics": {"latency_s": 2e-5, "bandwidth_Bps": 1.25e10},     of a host, shared by its devices; not needed for one host
//     "device": {"flops": 5e13, "memory_bytes": 8e10}            floating point operations a second that matrix products reach
//   }
//
// Any bytes may be handed in; what is unknown, missing, or no such number is an Error (Exit::usage) that names it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal::train {

struct Wire {
  double latency_s = 0;
  double bandwidth_Bps = 1;
};

struct SearchCluster {
  std::string name;
  std::size_t hosts = 1;
  std::size_t ranks_per_host = 1;
  Wire within, nics;
  double flops = 1;
  double memory_bytes = 1;

  std::size_t ranks() const { return hosts * ranks_per_host; }
};

SearchCluster parse_search_cluster(std::string_view text);
SearchCluster load_search_cluster(const std::string& path);

}  // namespace shoal::train
