// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter in two levels: within groups of ranks that are close (a host), then across them.
//
// Idea: within a group, the rank in place l collects the group's sums of all blocks that belong to ranks in place l; these go
// around the ring of all ranks in that place. For two groups of two and blocks a b c d:
//
//            within   across
//   rank 0   ac       A
//   rank 1   bd       B
//   rank 2   ac       C
//   rank 3   bd       D
//
// Cost: (g-1) + (m-1) rounds for m groups of g; (g-1)/g n bytes sent a rank within, (m-1)/m n/g across: 1/g of a ring's on the
// slow links. Wins on several hosts. Without known groups, the most balanced. Two credits, as in a ring.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/groups.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan reduce_scatter_hierarchical(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const std::int32_t g = request.group != 0 ? request.group : balanced_group(request.world);
  if (p % g != 0) return {.refusal = "the ranks are not in equal groups"};
  const std::int32_t m = p / g, group = r / g, local = r % g;
  const Chunk result = output(fixed(r));

  LaneBuilder lane;
  if (p == 1) lane.copy(input(fixed(0)), result, /*final=*/true);
  if (g > 1) {
    const Rotating to = fixed(group * g + (local + 1) % g), from = fixed(group * g + (local + g - 1) % g);
    const auto of_place = [&](std::int32_t l, std::int32_t stride = 0) {
      return every(Buffer::input, rotating(l, stride, g), m, g);
    };
    lane.send(to, of_place(local - 1));
    lane.loop(g - 2, [&] { lane.recv_reduce_send(from, of_place(local - 2, -1), to); });
    lane.recv_reduce(from, of_place(local), m == 1 ? result : window(Buffer::scratch, fixed(0), m), /*final=*/m == 1);
  }
  if (m > 1) {
    const Rotating to = fixed((group + 1) % m * g + local), from = fixed((group + m - 1) % m * g + local);
    // What is left: one block a group.
    const auto of_group = [&](std::int32_t b, std::int32_t stride = 0) {
      return Chunk{g > 1 ? Buffer::scratch : Buffer::input, rotating(b, stride, m)};
    };
    lane.send(to, of_group(group - 1));
    lane.loop(m - 2, [&] { lane.recv_reduce_send(from, of_group(group - 2, -1), to); });
    lane.recv_reduce(from, of_group(group), result, /*final=*/true);
  }
  return {.chunks = 1,
          .scratch = g > 1 && m > 1 ? m : 0,
          .credits = g > 2 || m > 2 ? 2 : 1,
          .by_reference = g == 1 || m != 2,  // two groups: nothing follows to say that the one message across was taken
          .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
