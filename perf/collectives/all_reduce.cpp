// SPDX-License-Identifier: Apache-2.0
#include "perf/all_reduce.h"

namespace shoal::perf {
namespace {

Extent extent(std::size_t bytes, std::size_t element_bytes, int /*world*/) {
  const std::size_t count = bytes / element_bytes;
  return {.count = count, .send = count, .receive = count, .total = count};
}

InPlace in_place(const Extent& /*extent*/, const Place& /*place*/) { return {}; }

double bus_factor(int world) { return 2.0 * (world - 1) / world; }

void prepare(Pattern& pattern, const Place& place, std::span<std::byte> send) { pattern.write_input(send, place.rank); }

ncclResult_t launch(const Call& call) {
  if (call.compressor != nullptr)
    return shoalAllReduceCompressed(call.send, call.receive, call.count, call.type, call.op, call.compressor, "tensor", call.rows,
                                    call.comm, call.stream, call.report);
  return ncclAllReduce(call.send, call.receive, call.count, call.type, call.op, call.comm, call.stream);
}

std::int64_t check(Pattern& pattern, const Place& /*place*/, std::span<const std::byte> receive) {
  return pattern.wrong_results(receive);
}

}  // namespace

constinit const Collective kAllReduce = {.name = "all_reduce",
                                         .call = "ncclAllReduce",
                                         .reduces = true,
                                         .rooted = false,
                                         .works_in_place = true,
                                         .extent = extent,
                                         .in_place = in_place,
                                         .bus_factor = bus_factor,
                                         .prepare = prepare,
                                         .launch = launch,
                                         .check = check};

}  // namespace shoal::perf
