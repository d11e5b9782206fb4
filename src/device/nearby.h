// SPDX-License-Identifier: Apache-2.0
// Where a thread that works for another one best runs: on the same NUMA node, near the memory that the other one has touched.
#pragma once

#include <string>
#include <vector>

namespace shoal::device {

// Processors of the NUMA node that the calling thread runs on, by the system's numbers, of those that it may use; of all that the
// node has, if NCCL_IGNORE_CPU_AFFINITY is 1. Empty where there is nothing to keep to: one node, none known, or
// SHOAL_STREAM_AFFINITY=0.
std::vector<int> processors_nearby();

// The calling thread keeps to these from now on; not to none, and not where the system refuses.
void keep_to(const std::vector<int>& processors);

// Of `processors` those of the node, as `folder` (/sys/devices/system/node) shows it; empty: all of them are, or none. Pure but
// for the folder.
std::vector<int> on_node(const std::string& folder, unsigned node, const std::vector<int>& processors);

}  // namespace shoal::device
