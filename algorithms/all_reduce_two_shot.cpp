// SPDX-License-Identifier: Apache-2.0
// All-reduce in two shots over memory that all ranks can read.
//
// Idea: everybody shows the vector; rank r adds chunk r of all p vectors, in the order of ranks, and shows the sum; then each
// rank copies the others' sums. For four ranks and chunks a b c d:
//
//   rank 0   show | A | copy B C D
//   rank 1   show | B | copy C D A
//   rank 2   show | C | copy D A B
//   rank 3   show | D | copy A B C
//
// Cost: 2 rounds of signals; each rank reads (2p-1)/p n bytes and adds (p-1)/p n. Wins over one shot within a host as soon as
// bytes count: from about 512 KiB for 4 ranks. A sum takes the place of the chunk that only its own rank reads.
#include "algorithms/algorithms.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_reduce_two_shot(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  if (p > 64) return {.refusal = "memory is shared by at most 64 ranks"};

  LaneBuilder lane;
  if (p == 1) {
    lane.copy(input(fixed(0)), output(fixed(0)), /*final=*/true);
    return {.lanes = {lane.take()}};
  }
  const auto meet = [&] {
    lane.loop(p - 1, [&] { lane.signal(rotating(r + 1, 1, p)); });
    lane.loop(p - 1, [&] { lane.wait(rotating(r - 1, -1, p)); });
  };
  lane.copy(window(Buffer::input, fixed(0), p), window(Buffer::shared, fixed(0), p));
  meet();
  lane.reduce_shared(shared(fixed(r)), output(fixed(r)), /*final=*/true);
  lane.copy(output(fixed(r)), shared(fixed(r)));
  meet();
  const Rotating above = rotating(r + 1, 1, p);
  lane.loop(p - 1, [&] { lane.copy_shared(above, shared(above), output(above)); });
  return {.chunks = p, .shared = p, .credits = 1, .boards = Boards::two_shot, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
