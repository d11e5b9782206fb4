// SPDX-License-Identifier: Apache-2.0
// A job on some hosts: its links as a graph, and as a cluster that the simulator runs plans on. Pure.
#pragma once

#include <span>
#include <vector>

#include "core/status.h"
#include "plan/simulator/cluster.h"
#include "topo/bound/graph.h"
#include "topo/host.h"

namespace shoal::topo {

// Ranks are the hosts' GPUs in order, or, where a host has none, `ranks_without_gpus` on its nodes in turn.
struct Job {
  Graph graph;
  std::vector<std::vector<int>> groups;  // partitions of the ranks: by host, by node, by what is below one PCI switch
  std::vector<int> host_of_rank;
};

// Links: NVLink to GPUs and switches, PCI, and the hosts' fastest network (RDMA ports, else interfaces) to a switch that never
// blocks. Links of unknown bandwidth, such as those between processors, are unlimited.
Result<Job> job_on(std::span<const Host> hosts, int ranks_without_gpus);

// The same in the simulator's terms, which knows ranks of a host, their NICs, and no more: a host's narrowest way between two of
// its ranks, and the slowest host's network for all. Latencies are those of the kind of machine.
plan::Cluster cluster_of(const Job& job, std::span<const Host> hosts);

}  // namespace shoal::topo
