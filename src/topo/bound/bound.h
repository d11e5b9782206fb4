// SPDX-License-Identifier: Apache-2.0
// How long a collective takes at least over the links of a graph, whatever the algorithm: what must pass through a cut, by what
// the cut can carry. Latencies and computing count for nothing here. Pure.
#pragma once

#include <string>
#include <vector>

#include "plan/collective.h"
#include "topo/bound/graph.h"

namespace shoal::topo {

struct Bound {
  double seconds = 0;  // 0: no link on the way has a known bandwidth
  std::string cut;     // what limits, in words
};

// `bytes` of the vector or of a block (of all ranks equal); `root` for collectives that have one. `groups`: parts of the ranks
// that are close to each other (hosts, nodes, switches); each is a partition: a group's number for every rank.
//
//   all-gather       max over cuts S of (ranks in S) * block / (bandwidth out of S): exact, by flows (Zhao et al. 2024,
//   "ForestColl") reduce-scatter   the same on the graph with all links turned round broadcast        n / least cut between the
//   root and any rank (Edmonds 1973); reduce: turned round all-reduce       n / least cut between any two ranks; and 2 (u-1) n
//   into any u parts together, over ranks and the groups given all-to-all       what leaves a rank or a group given gather,
//   scatter  what enters or leaves the root
Bound bound_of(const Graph& graph, plan::Collective collective, double bytes, int root,
               const std::vector<std::vector<int>>& groups);

}  // namespace shoal::topo
