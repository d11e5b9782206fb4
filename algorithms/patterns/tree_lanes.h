// SPDX-License-Identifier: Apache-2.0
// The way up and the way down of one rank of a pipelined binary tree, each a lane of its own: while a slice comes down, the next
// ones go up. Used while a plan is built, by one thread.
#pragma once

#include "algorithms/patterns/double_tree.h"
#include "plan/builder.h"

namespace shoal::algorithms {

// The children's sums and this rank's own share to the parent. `partial` is used by ranks with two children only.
inline void reduce_to_parent(plan::LaneBuilder& lane, const TreePlace& place, plan::Chunk mine, plan::Chunk partial) {
  using plan::fixed;
  switch (place.children) {
    case 0: lane.send(fixed(place.parent), mine); break;
    case 1: lane.recv_reduce_send(fixed(place.child[0]), mine, fixed(place.parent)); break;
    default:
      lane.recv_reduce(fixed(place.child[0]), mine, partial);
      lane.recv_reduce_send(fixed(place.child[1]), partial, fixed(place.parent));
  }
}

// What the parent sends, into `result` and to the children.
inline void copy_from_parent(plan::LaneBuilder& lane, const TreePlace& place, plan::Chunk result) {
  using plan::fixed;
  if (place.children == 0)
    lane.recv(fixed(place.parent), result);
  else
    lane.recv_copy_send(fixed(place.parent), result, fixed(place.child[0]));
  if (place.children == 2) lane.send(fixed(place.child[1]), result);
}

}  // namespace shoal::algorithms
