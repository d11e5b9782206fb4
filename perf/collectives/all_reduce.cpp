// SPDX-License-Identifier: Apache-2.0
// All-reduce: every rank gets the reduction over all. A ring moves 2(n-1)/n bytes a rank for each byte of the array.
#include "perf/collectives/collectives.h"
#include "perf/collectives/shares.h"

namespace shoal::perf {
namespace {

Extent extent(std::size_t bytes, std::size_t element_bytes, const Place& /*place*/) {
  const std::size_t count = bytes / element_bytes;
  return {.count = count, .send = count, .receive = count, .total = count, .moved = count};
}

double bus_factor(int world) { return 2.0 * (world - 1) / world; }

ncclResult_t launch(const Call& call, int /*round*/) {
  if (call.compressor != nullptr)
    return shoalAllReduceCompressed(call.send, call.receive, call.count, call.type, call.op, call.compressor, "tensor", call.rows,
                                    call.comm, call.stream, call.report);
  return ncclAllReduce(call.send, call.receive, call.count, call.type, call.op, call.comm, call.stream);
}

std::int64_t check(Pattern& pattern, const Place& /*place*/, const Blocks& /*blocks*/, std::span<const std::byte> receive) {
  return pattern.wrong_results(receive);
}

}  // namespace

constinit const Collective kAllReduce = {.name = "all_reduce",
                                         .call = "ncclAllReduce",
                                         .reduces = true,
                                         .rooted = false,
                                         .works_in_place = true,
                                         .power_of_two = false,
                                         .extent = extent,
                                         .in_place = same_place,
                                         .blocks = nullptr,
                                         .bus_factor = bus_factor,
                                         .rounds = once,
                                         .prepare = write_own,
                                         .launch = launch,
                                         .check = check};

}  // namespace shoal::perf
