// SPDX-License-Identifier: Apache-2.0
// Clusters as JSON text. Everything but `hosts` may be left out; a field that is not known, comes twice or has another type is an
// error that names it. Any bytes may be handed in.
//
//   {
//     "name": "two racks", "hosts": 16, "ranks_per_host": 8,     or "host_of_rank": [0, 0, 1, ...]
//     "overhead_s": 1e-6, "reduce_Bps": 8e9, "copy_Bps": 1e10, "cores_per_host": 0, "credits": 4,
//     "within": {"through": "switch", "latency_s": 1e-6, "bandwidth_Bps": 4e11},     "pairs", "switch", "bus"
//     "nics": {"per_host": 2, "of_local": [0, 0, 0, 0, 1, 1, 1, 1], "latency_s": 5e-6, "out_Bps": 5e10, "in_Bps": 5e10},
//     "leaves": {"hosts": 8, "by": "host", "latency_s": 1e-6, "oversubscription": 2}    "host", "rail"; or "uplink_Bps"
//   }
//
// "bandwidth_Bps" in nics is both directions. A credit comes back after the latency, unless "credit_s" says otherwise. An
// oversubscription of k gives a leaf up-links of 1/k of what its NICs send; 1 or less is a network that is never full.
#pragma once

#include <string>
#include <string_view>

#include "plan/simulator/cluster.h"

namespace shoal::plan {

Result<Cluster> parse_cluster(std::string_view text);
// Of a file; the errors name it.
Result<Cluster> load_cluster(const std::string& path);
// parse_cluster of it gives the same cluster.
std::string text_of(const Cluster& cluster);

// A preset's name, else a file's path (which has a '.' or a '/'). A file must have ranks enough for the world.
Result<Cluster> cluster_from(const std::string& name_or_path, World world);

}  // namespace shoal::plan
