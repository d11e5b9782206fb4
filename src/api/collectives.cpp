// SPDX-License-Identifier: Apache-2.0
// The collectives of NCCL's API: argument checks and translation.
#include <shoal/shoal.h>

#include "api/arguments.h"
#include "api/checked_calls.h"
#include "api/errors.h"
#include "api/group.h"
#include "api/red_op.h"
#include "api/streams.h"

namespace {

using namespace shoal;
using namespace shoal::api;
using plan::Collective;

// Where a buffer counts on this rank at all, it has `count` elements, or a block for every rank.
Extent extent(const void* start, Collective c, Rank self, World world, Rank root, Bytes block,
              bool (*has)(Collective, std::int32_t, std::int32_t, std::int32_t)) {
  if (!plan::in_blocks(c)) return has(c, self.value, root.value, 0) ? Extent{start, block} : Extent{};
  std::size_t blocks = 0;
  for (std::int32_t b = 0; b < std::min(world.value, 2); ++b)
    blocks += has(c, self.value, root.value, (self.value + b) % world.value) ? 1 : 0;
  return blocks == 0 ? Extent{}
                     : Extent{start, {blocks == 1 ? block.value : block.value * static_cast<std::size_t>(world.value)}};
}

Status check_memory(const CollectiveArguments& a, Rank self, World world, Bytes block) {
  const Extent input = extent(a.input, a.collective, self, world, {a.root}, block, plan::has_input);
  const Extent output = extent(a.output, a.collective, self, world, {a.root}, block, plan::has_output);
  // In place, the smaller buffer is this rank's block of the larger one.
  const auto own = static_cast<std::ptrdiff_t>(block.value) * self.value;
  const std::ptrdiff_t shift = input.size > output.size ? own : input.size < output.size ? -own : 0;
  return check_buffers(input, output, plan::has_in_place(a.collective), shift);
}

Status run(const CollectiveArguments& a, ncclComm_t comm, cudaStream_t stream) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  CheckedCalls& checked = entered->handle().checked;
  if (stream == nullptr && !in_group()) [[likely]]
    if (engine::Call* const known = checked.find(a)) return entered->communicator().perform_again(*known);
  const comm::Communicator& communicator = entered->communicator();
  const World world = communicator.world();
  const Result<DataType> type = read_type(a.type);
  if (!type.is_ok()) return type.status();
  if (Status s = check_count("count", a.count, *type, plan::in_blocks(a.collective) ? static_cast<std::size_t>(world.value) : 1);
      !s.is_ok())
    return s;
  if (plan::has_root(a.collective))
    if (Status s = check_rank("root", a.root, world); !s.is_ok()) return s;
  if (Status s = check_memory(a, communicator.rank(), world, size_of({a.count}, *type)); !s.is_ok()) return s;
  Result<std::shared_ptr<device::Stream>> found = find_stream(stream);
  if (!found.is_ok()) return found.status();

  engine::Call call{
      .collective = a.collective, .input = a.input, .output = a.output, .count = {a.count}, .type = *type, .root = {a.root}};
  const void* late_factor = nullptr;
  if (plan::is_reduction(a.collective)) {
    call.numerics = communicator.numerics();
    if (a.numerics) {
      const Result<engine::Numerics> mode = read_numerics(*a.numerics);
      if (!mode.is_ok()) return mode.status();
      call.numerics = *mode;
    }
    if (Status s = read_reduction(a.op, entered->handle(), *type, call, late_factor); !s.is_ok()) return s;
    if (call.numerics == engine::Numerics::exact && call.op == ReduceOp::prod && !is_integer(*type))
      return fail(Code::invalid_usage, "products of {} cannot be exact: use fast or ordered numerics for them", name_of(*type));
  }
  // The usual case, without anything that can be kept for later.
  if (*found == nullptr && late_factor == nullptr && entered->handle().blocking && !in_group()) [[likely]] {
    const bool keeps = a.op < ncclNumOps && communicator.wire_format() == nullptr;  // else what the arguments mean may change
    if (!keeps) return entered->communicator().perform(call);
    return entered->communicator().perform(checked.keep(a, std::move(call)));
  }
  return submit(Issued{.on = entered.take(), .call = std::move(call), .late_factor = late_factor, .stream = found.take()});
}

ncclResult_t collective(const char* function, const CollectiveArguments& arguments, ncclComm_t comm, cudaStream_t stream) {
  return guarded(function, [&] {
    Status status = run(arguments, comm, stream);
    return status.is_ok() ? Status() : poison_group(std::move(status));
  });
}

}  // namespace

extern "C" {

ncclResult_t pncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream) {
  return collective("ncclAllReduce", {Collective::all_reduce, sendbuff, recvbuff, count, datatype, op}, comm, stream);
}

ncclResult_t pncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return collective("ncclReduce", {Collective::reduce, sendbuff, recvbuff, count, datatype, op, root}, comm, stream);
}

ncclResult_t pncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                            ncclComm_t comm, cudaStream_t stream) {
  return collective("ncclBroadcast", {Collective::broadcast, sendbuff, recvbuff, count, datatype, ncclSum, root}, comm, stream);
}

ncclResult_t pncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream) {
  return collective("ncclBcast", {Collective::broadcast, buff, buff, count, datatype, ncclSum, root}, comm, stream);
}

ncclResult_t pncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,
                                ncclComm_t comm, cudaStream_t stream) {
  return collective("ncclReduceScatter", {Collective::reduce_scatter, sendbuff, recvbuff, recvcount, datatype, op}, comm, stream);
}

ncclResult_t pncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
                            cudaStream_t stream) {
  return collective("ncclAllGather", {Collective::all_gather, sendbuff, recvbuff, sendcount, datatype}, comm, stream);
}

ncclResult_t pncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream) {
  return collective("ncclAlltoAll", {Collective::all_to_all, sendbuff, recvbuff, count, datatype}, comm, stream);
}

ncclResult_t pncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                         cudaStream_t stream) {
  return collective("ncclGather", {Collective::gather, sendbuff, recvbuff, count, datatype, ncclSum, root}, comm, stream);
}

ncclResult_t pncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                          cudaStream_t stream) {
  return collective("ncclScatter", {Collective::scatter, sendbuff, recvbuff, count, datatype, ncclSum, root}, comm, stream);
}

ncclResult_t shoalAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                            shoalNumerics mode, ncclComm_t comm, cudaStream_t stream) {
  return collective("shoalAllReduce", {Collective::all_reduce, sendbuff, recvbuff, count, datatype, op, 0, mode}, comm, stream);
}

ncclResult_t shoalReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
                         shoalNumerics mode, ncclComm_t comm, cudaStream_t stream) {
  return collective("shoalReduce", {Collective::reduce, sendbuff, recvbuff, count, datatype, op, root, mode}, comm, stream);
}

ncclResult_t shoalReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,
                                shoalNumerics mode, ncclComm_t comm, cudaStream_t stream) {
  return collective("shoalReduceScatter", {Collective::reduce_scatter, sendbuff, recvbuff, recvcount, datatype, op, 0, mode},
                    comm, stream);
}

[[gnu::weak, gnu::alias("pncclAllReduce")]] decltype(pncclAllReduce) ncclAllReduce;
[[gnu::weak, gnu::alias("pncclReduce")]] decltype(pncclReduce) ncclReduce;
[[gnu::weak, gnu::alias("pncclBroadcast")]] decltype(pncclBroadcast) ncclBroadcast;
[[gnu::weak, gnu::alias("pncclBcast")]] decltype(pncclBcast) ncclBcast;
[[gnu::weak, gnu::alias("pncclReduceScatter")]] decltype(pncclReduceScatter) ncclReduceScatter;
[[gnu::weak, gnu::alias("pncclAllGather")]] decltype(pncclAllGather) ncclAllGather;
[[gnu::weak, gnu::alias("pncclAlltoAll")]] decltype(pncclAlltoAll) ncclAlltoAll;
[[gnu::weak, gnu::alias("pncclGather")]] decltype(pncclGather) ncclGather;
[[gnu::weak, gnu::alias("pncclScatter")]] decltype(pncclScatter) ncclScatter;

}  // extern "C"
