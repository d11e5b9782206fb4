// SPDX-License-Identifier: Apache-2.0
// All-to-all in two levels: inside hosts, then between them.
//
// Idea: rank l of a host first collects, from the ranks of its host, the blocks for the ranks l of all hosts; then it swaps with
// these, a host's worth of blocks in one message. For four ranks, two a host; xy is the block from x to y:
//
//             has            after hosts (to ranks with the same l)   after the exchange between hosts
//   rank 0   00 01 02 03     00 10  02 12                             00 10 20 30
//   rank 1   10 11 12 13     01 11  03 13                             01 11 21 31
//   rank 2   20 21 22 23     20 30  22 32                             02 12 22 32
//   rank 3   30 31 32 33     21 31  23 33                             03 13 23 33
//
// Cost, with g ranks on each of m hosts: (g-1) + (m-1) messages instead of p-1, those between hosts g blocks long; twice the
// bytes on the way, half of them inside hosts. Wins for short blocks on many hosts. Where nothing is known of hosts, g is the
// largest divisor of p up to its root; with one rank a host or one host it is the pairwise exchange.
#include "algorithms/algorithms.h"
#include "algorithms/patterns/groups.h"
#include "plan/builder.h"

namespace shoal::algorithms {

using namespace plan;

Plan all_to_all_hierarchical(const Request& request) {
  const std::int32_t p = request.world.value, r = request.rank.value;
  const std::int32_t g = request.group > 0 ? request.group : balanced_group(request.world);
  if (p % g != 0) return {.refusal = "the ranks are not in equal groups"};
  const std::int32_t m = p / g;
  if (g == 1 || m == 1) return all_to_all_pairwise(request);
  const std::int32_t host = r / g, local = r % g;

  // Scratch slot h g + l: the block from the l-th rank of this host for host h.
  const auto for_local = [&](Rotating l) { return every(Buffer::input, l, m, g); };
  const auto from_local = [&](Rotating l) { return every(Buffer::scratch, l, m, g); };
  const auto of_host = [&](Buffer buffer, Rotating h) {
    h.scale = g;
    return window(buffer, h, g);
  };
  const auto in_host = [&](Rotating l) {
    l.base = host * g;
    return l;
  };
  const auto at_host = [&](Rotating h) {
    h.scale = g;
    h.base = local;
    return h;
  };

  LaneBuilder lane;
  lane.copy(for_local(fixed(local)), from_local(fixed(local)));
  const Rotating above = rotating(local + 1, 1, g), below = rotating(local - 1, -1, g);
  lane.loop(g - 1, [&] {
    lane.send(in_host(above), for_local(above));
    lane.recv(in_host(below), from_local(below));
  });
  const Rotating after = rotating(host + 1, 1, m), before = rotating(host - 1, -1, m);
  lane.loop(m - 1, [&] {
    lane.send(at_host(after), of_host(Buffer::scratch, after));
    lane.recv(at_host(before), of_host(Buffer::output, before));
  });
  lane.copy(of_host(Buffer::scratch, fixed(host)), of_host(Buffer::output, fixed(host)));
  return {.chunks = 1, .scratch = p, .credits = 1, .by_reference = true, .lanes = {lane.take()}};
}

}  // namespace shoal::algorithms
