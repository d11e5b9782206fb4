// SPDX-License-Identifier: Apache-2.0
// What a set of plans costs in messages, bytes and rounds, whatever the machine: exact numbers, compared with the formulas of the
// literature for equality. Pure; any thread.
//
// A message's round is one more than the latest round of the data messages that its sender's lane had received before it. Signals
// carry no data and no round of their own: they hand the sender's on. So N reduces at once take one round, a parameter server
// two, a ring 2(N-1).
//
// Two readings of "bandwidth" are about, and are named apart: Round is one round of the run (unchunked algorithms: whole vectors
// move in each), the totals are the whole collective (chunked ones: a vector's share moves in each round).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "plan/plan.h"

namespace shoal::plan {

struct Counters {
  struct Node {  // one rank
    std::uint64_t messages_sent = 0, messages_received = 0;
    std::uint64_t sent = 0, received = 0;  // payload bytes
    std::uint64_t signals_sent = 0;
    std::uint64_t reduced = 0;      // bytes added to others
    std::uint64_t direct_read = 0;  // bytes read from the shared slots of other ranks
  };
  struct Round {
    std::uint64_t messages = 0;
    std::uint64_t peak_node = 0;  // most bytes that one rank sends, or that one receives
    std::uint64_t total = 0;      // bytes sent by all
  };
  std::vector<Node> nodes;
  std::vector<Round> rounds;
  std::uint64_t messages = 0, signals = 0;
  std::uint64_t peak_node = 0;  // of the whole collective: most bytes that one rank sends, or that one receives
  std::uint64_t total = 0;      // of the whole collective: bytes sent by all
  std::uint64_t scratch = 0;    // most bytes of scratch slots of a rank, one slice in flight
  std::uint64_t shared = 0;     // most bytes of shared slots of a rank, both sets

  // Over rounds, each by itself.
  std::uint64_t peak_node_in_a_round() const;
  std::uint64_t total_in_a_round() const;
};

// `plans` by rank, all of one world; `bytes` of the vector, or of each block, in whole elements of `element_bytes`, run as one
// slice. Fails on a set that does not finish, and on one whose rounds would need too much memory.
Result<Counters> count(std::span<const Plan> plans, Bytes bytes, std::size_t element_bytes = 1);

}  // namespace shoal::plan
