// SPDX-License-Identifier: Apache-2.0
// Recursive halving for any number of ranks by 3-2 elimination: who swaps what with whom. Pure; used while a plan is built.
//
// A group of ranks shares a segment of chunks. Ranks pair up; of each pair one takes the lower half of the segment, the other the
// upper, and the takers of each half form a group of their own. If the number of ranks is odd, three of them do it together:
// positions 1 and 2 swap halves, then 2 hands its upper half to 0 while 0 hands its lower half to 1: 1 takes the lower half, 0
// the upper, and 2 is out. For seven ranks, with + for who is out:
//
//   0 1 2 | 3 4 | 5 6      of 0 1 2: 1 takes the lower half, 0 the upper
//   lower: 1 3 5   upper: 0 4 6   + 2
//   lowest: 3   next: 1   + 5     ...
//
// Groups of m ranks become two of m/2 (rounded down), so that p ranks end with p' = 2^k chunks, p' the largest power of two not
// above p. After Rabenseifner & Traeff, "More efficient reduction algorithms for non-power-of-two number of processors" 2004.
#pragma once

#include <cstdint>
#include <vector>

namespace shoal::algorithms {

// One round of halving as one rank lives it.
struct Halving {
  enum class Role : std::uint8_t {
    lower,         // of a pair: takes the lower half; `partner` takes the upper
    upper,         // of a pair
    triple_upper,  // position 0 of a triple: takes the upper half
    triple_lower,  // position 1
    triple_out,    // position 2: takes nothing and is out
  };
  Role role = Role::lower;
  std::int32_t partner = -1;    // of a pair
  std::int32_t triple[3] = {};  // the ranks in positions 0, 1 and 2
  std::int32_t first = 0;       // first chunk of the segment
  std::int32_t half = 0;        // chunks in each half
  bool finishes = false;        // the halves are single chunks, finished after this round
};

// The rounds of rank r of p, in order; the last has finishes or triple_out. O(log^2 p).
std::vector<Halving> halvings(std::int32_t p, std::int32_t r);

}  // namespace shoal::algorithms
