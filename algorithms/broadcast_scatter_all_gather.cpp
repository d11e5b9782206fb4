// SPDX-License-Identifier: Apache-2.0
// Broadcast as a scatter and an all-gather.
//
// Idea: the vector is cut into p chunks, numbered by label (rank - root mod p). A binomial scatter leaves each label with the
// window of chunks of its subtree, its own first; then the chunks go around a ring. The scatter left some labels with more than
// their own chunk: what a label has is not sent to it again, so that its left neighbour stops early, and nobody sends to the
// root. For four ranks and root 0, what each rank sends:
//
//             scatter         all-gather
//   rank 0    cd->2  b->1     a  d  c
//   rank 1                    b  a        c and d: rank 2 has them
//   rank 2    d->3            c  b  a
//   rank 3                                the root has all
//
// Cost: ceil(log2 p) + p-1 rounds; the root sends 2(p-1)/p n bytes, nobody sends more. Wins for long vectors where a chain would
// take too long to fill. Thakur, Rabenseifner & Gropp 2005; the left-out messages: Zhou et al., "A bandwidth-saving optimization
// for MPI broadcast" 2015.
#include <algorithm>
#include <ranges>

#include "algorithms/algorithms.h"
#include "algorithms/patterns/binomial.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan broadcast_scatter_all_gather(const Request& request) {
  const std::int32_t p = request.world.value;
  const Binomial tree(request.world, request.root);
  const std::int32_t label = tree.label(request.rank);
  const Buffer source = label == 0 ? Buffer::input : Buffer::output;
  const auto under = [&](Buffer buffer, std::int32_t v) { return window(buffer, fixed(v), tree.subtree(v)); };

  LaneBuilder lane;
  if (label != 0) lane.recv(fixed(tree.rank(tree.parent(label))), under(Buffer::output, label));
  for (const std::int32_t child : tree.children(label) | std::views::reverse)
    lane.send(fixed(tree.rank(child)), under(source, child));

  // The ring: chunks label, label - 1, ... go out, and label - 1, label - 2, ... come in, each until the receiver has the rest.
  const std::int32_t incoming = p - tree.subtree(label), outgoing = p - tree.subtree((label + 1) % p);
  const Rotating to = fixed(next(request.rank, request.world)), from = fixed(prev(request.rank, request.world));
  const auto chunk = [&](Buffer buffer, std::int32_t back) { return window(buffer, rotating(label - 1 - back, -1, p), 1); };
  const std::int32_t passed = std::clamp(outgoing - 1, 0, incoming);  // of those that come in
  if (outgoing > 0) lane.send(to, window(source, fixed(label), 1));
  lane.loop(passed, [&] { lane.recv_copy_send(from, chunk(Buffer::output, 0), to); });
  lane.loop(incoming - passed, [&] { lane.recv(from, chunk(Buffer::output, passed)); });
  lane.loop(outgoing - 1 - passed, [&] { lane.send(to, chunk(source, passed)); });
  if (label == 0) lane.copy(under(Buffer::input, 0), under(Buffer::output, 0));
  return {.chunks = p, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
