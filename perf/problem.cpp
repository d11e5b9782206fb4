// SPDX-License-Identifier: Apache-2.0
#include "perf/problem.h"

#include <algorithm>

namespace shoal::perf {

Pattern Problem::pattern(std::uint64_t seed) const {
  const Reduction kind = collective->reduces ? reduction->reduction : Reduction::min;
  return {{type, kind, world, seed}, extent(0).total};
}

Regions regions_of(Member& member, const Problem& problem, int unalign) {
  const Extent extent = problem.extent(member.rank);
  const std::size_t size = problem.type->bytes, shift = static_cast<std::size_t>(unalign) * size;
  Regions regions;
  if (!problem.in_place) {
    regions.send = member.send.region(shift, extent.send * size);
    regions.receive = regions.used = member.receive.region(shift, extent.receive * size);
    return regions;
  }
  const InPlace at = problem.collective->in_place(extent, problem.place(member.rank));
  regions.send = member.receive.region(shift + at.send * size, extent.send * size);
  regions.receive = member.receive.region(shift + at.receive * size, extent.receive * size);
  const std::size_t from = std::min(at.send, at.receive), to = std::max(at.send + extent.send, at.receive + extent.receive);
  regions.used = member.receive.region(shift + from * size, (to - from) * size);
  return regions;
}

}  // namespace shoal::perf
