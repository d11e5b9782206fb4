// SPDX-License-Identifier: Apache-2.0
// What one half of a row measures, and where its data lie in a rank's buffers. Value types.
#pragma once

#include "perf/team.h"

namespace shoal::perf {

struct Problem {
  const Collective* collective;
  const ElementType* type;
  const ReductionInfo* reduction;
  int root;  // -1 if the collective has none
  std::uint64_t bytes;
  bool in_place;
  const Traffic* traffic;
  int world;

  Place place(int rank) const { return {rank, world, root, traffic}; }
  Extent extent(int rank) const { return collective->extent(bytes, type->bytes, place(rank)); }
  Blocks blocks(int rank) const {
    return collective->blocks != nullptr ? collective->blocks(bytes, type->bytes, place(rank)) : Blocks{};
  }
  // Inputs and results for this seed. Where nothing is reduced: any bits.
  Pattern pattern(std::uint64_t seed) const;
};

// The memory of one call of a rank. In place the output is in the input, or the other way round, and both are in the second of
// its buffers.
struct Regions {
  std::span<std::byte> send, receive;
  std::span<std::byte> used;  // of the buffer of the output: what the call may touch
};

// With buffers moved off their alignment by `unalign` elements.
Regions regions_of(Member& member, const Problem& problem, int unalign);

}  // namespace shoal::perf
