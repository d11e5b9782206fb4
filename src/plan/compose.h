// SPDX-License-Identifier: Apache-2.0
// Plans of plans: the program of a smaller world becomes a phase of a larger one's. Pure; any thread.
//
//   Lane lane = embed(reduce_scatter_ring(inside).lanes[0], {.rank_base = first, .width = m});  // within the host
//   append(lane, embed(...));                                                                   // then among hosts
//
// Phases that one after the other finish with some number of credits also do so in a row: the run in which all ranks end a phase
// before any begins the next is one of the possible runs, and which is taken makes no difference to plans.
#pragma once

#include "plan/plan.h"

namespace shoal::plan {

// Where the part stands in the whole.
struct Place {
  std::int32_t rank_base = 0, rank_scale = 1;  // the part's rank q is rank_base + rank_scale * q
  std::int32_t chunk_base = 0, width = 1;      // its chunk (or slot) c is the `width` chunks from chunk_base + width * c on
  Buffer input = Buffer::input;                // what it reads as its input: the output, if an earlier phase left it there
  bool finishes = true;                        // else its sums are partial, and no step is final
};

// Copies of a place to itself are left out. A set that wraps around cannot be moved: chunk_base is 0 then.
Lane embed(const Lane& part, const Place& place);

// The phase's steps after those of the lane, on the lane's channel.
void append(Lane& lane, Lane phase);

}  // namespace shoal::plan
