// SPDX-License-Identifier: Apache-2.0
// The list of collectives: a line each.
#include <array>

#include "perf/collectives/collectives.h"

namespace shoal::perf {
namespace {

constexpr std::array<const Collective*, 11> kCollectives = {
    &kAllReduce, &kAllGather, &kReduceScatter, &kBroadcast, &kReduce,    &kAllToAll,
    &kAllToAllV, &kGather,    &kScatter,       &kSendRecv,  &kHypercube,
};

}  // namespace

std::span<const Collective* const> collectives() { return kCollectives; }

const Collective* find_collective(std::string_view name) {
  for (const Collective* collective : kCollectives) {
    if (name == collective->name) return collective;
  }
  return nullptr;
}

}  // namespace shoal::perf
