// SPDX-License-Identifier: Apache-2.0
// PAT, parallel aggregated trees: a tree for each block, all shifted alike, so that in each round every rank does the same and
// sends one message. Pure; any thread.
//
// Of a block, rank origin + s is at offset s. In the tree of offsets, the parent of s is s without its lowest set bit. Rounds go
// over the bits: between a rank and the one `bit` above it move the blocks that have the lower rank at an offset that is a
// multiple of 2 bit (and the upper one at an offset below p). For four ranks, the blocks between rank r and rank r + bit:
//
//   bit 2: r            far ranks swap few blocks, near ranks many: Bruck's does the opposite
//   bit 1: r, r - 2
//
// All-gather: bits from the largest down, the lower rank sends. Reduce-scatter is the same backwards in time: bits from 1 up, the
// upper rank sends its partial sums to the lower one. Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter" 2025.
#pragma once

#include <bit>
#include <cstdint>

#include "plan/plan.h"

namespace shoal::algorithms {

// The largest bit of an offset: 0 for a world of one, which has no round.
constexpr std::int32_t pat_top_bit(World world) {
  return world.value < 2 ? 0 : static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(world.value - 1)));
}

// Blocks in the message of a bit.
constexpr std::int32_t pat_blocks(World world, std::int32_t bit) { return (world.value - bit + 2 * bit - 1) / (2 * bit); }

// The blocks of a bit as seen by the lower rank of a pair: those that it shares with rank + bit. The upper rank names the same
// blocks, in the same order, by pat_set(buffer, world, {rank - bit mod p}, bit).
constexpr plan::Chunk pat_set(plan::Buffer buffer, World world, Rank lower, std::int32_t bit) {
  return plan::every(buffer, plan::fixed(lower), pat_blocks(world, bit), -2 * bit, world.value);
}

// The partners of a bit.
constexpr Rank pat_upper(World world, Rank rank, std::int32_t bit) { return {(rank.value + bit) % world.value}; }
constexpr Rank pat_lower(World world, Rank rank, std::int32_t bit) { return {(rank.value - bit + world.value) % world.value}; }

}  // namespace shoal::algorithms
