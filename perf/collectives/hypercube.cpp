// SPDX-License-Identifier: Apache-2.0
// Hypercube: an all-gather made of sends and receives, log2 n rounds: in round i ranks that differ in bit i exchange all that
// they have, 2^i blocks. The size is that of all blocks; algbw counts those that a rank receives.
#include <algorithm>
#include <bit>

#include "perf/collectives/collectives.h"
#include "perf/collectives/shares.h"
#include "perf/group.h"

namespace shoal::perf {
namespace {

Extent extent(std::size_t bytes, std::size_t element_bytes, const Place& place) {
  const std::size_t block = block_elements(bytes, element_bytes, place.world), all = offset_of(place.world, block);
  return {.count = block, .send = block, .receive = all, .total = all, .moved = all - block};
}

InPlace in_place(const Extent& extent, const Place& place) { return {.send = offset_of(place.rank, extent.count), .receive = 0}; }

int rounds(int world) { return std::max(1, static_cast<int>(std::bit_width(static_cast<unsigned>(world - 1)))); }

ncclResult_t launch(const Call& call, int round) {
  auto* const all = static_cast<std::byte*>(call.receive);
  const std::size_t block = call.count * call.element_bytes;
  const int rank = call.place.rank, bit = 1 << round;
  const int mine = rank & ~(bit - 1), theirs = mine ^ bit;  // the first of the 2^round blocks that go, and that come
  const std::size_t count = call.count << round;
  return in_group(true, [&]() -> ncclResult_t {
    // The first round takes the input from where it is, and puts it into the output.
    if (round == 0 && call.send != all + offset_of(rank, block)) {
      ncclResult_t result = ncclSend(call.send, call.count, call.type, rank, call.comm, call.stream);
      if (result == ncclSuccess)
        result = ncclRecv(all + offset_of(rank, block), call.count, call.type, rank, call.comm, call.stream);
      if (result != ncclSuccess) return result;
    }
    if (call.place.world == 1) return ncclSuccess;
    const void* const from = round == 0 ? call.send : all + offset_of(mine, block);
    const ncclResult_t sent = ncclSend(from, count, call.type, rank ^ bit, call.comm, call.stream);
    if (sent != ncclSuccess) return sent;
    return ncclRecv(all + offset_of(theirs, block), count, call.type, rank ^ bit, call.comm, call.stream);
  });
}

}  // namespace

constinit const Collective kHypercube = {.name = "hypercube",
                                         .call = "ncclSend and ncclRecv",
                                         .reduces = false,
                                         .rooted = false,
                                         .works_in_place = true,
                                         .power_of_two = true,
                                         .extent = extent,
                                         .in_place = in_place,
                                         .blocks = nullptr,
                                         .bus_factor = all_of_it,
                                         .rounds = rounds,
                                         .prepare = write_own,
                                         .launch = launch,
                                         .check = check_gathered};

}  // namespace shoal::perf
