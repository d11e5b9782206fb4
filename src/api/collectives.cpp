// SPDX-License-Identifier: Apache-2.0
// The collectives of NCCL's API: argument checks and translation.
#include <limits>

#include "api/errors.h"
#include "api/group.h"
#include "api/red_op.h"
#include "api/streams.h"

namespace {

using namespace shoal;
using namespace shoal::api;

Status check_memory(const void* input, const void* output, Bytes size) {
  if (size.value == 0) return {};
  if (Status s = require(input, "sendbuff"); !s.is_ok()) return s;
  if (Status s = require(output, "recvbuff"); !s.is_ok()) return s;
  const auto a = reinterpret_cast<std::uintptr_t>(input), b = reinterpret_cast<std::uintptr_t>(output);
  if (a != b && (a < b ? b - a : a - b) < size.value)
    return fail(Code::invalid_argument,
                "sendbuff ({}) and recvbuff ({}) overlap within {} bytes: they must be equal (in place) or apart", input, output,
                size.value);
  return {};
}

Status all_reduce(const void* input, void* output, std::size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                  cudaStream_t stream) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  const std::optional<DataType> element = data_type_from(static_cast<int>(type));
  if (!element) return fail(Code::invalid_argument, "datatype is {}, must be 0 .. {}", static_cast<int>(type), kDataTypes - 1);
  if (count > std::numeric_limits<std::size_t>::max() / 2 / element_bytes(*element))
    return fail(Code::invalid_argument, "count is {}: more than memory can hold", count);
  if (Status s = check_memory(input, output, size_of({count}, *element)); !s.is_ok()) return s;
  Result<std::shared_ptr<device::Stream>> found = find_stream(stream);
  if (!found.is_ok()) return found.status();

  engine::Call call{
      .collective = plan::Collective::all_reduce, .input = input, .output = output, .count = {count}, .type = *element};
  const void* late_factor = nullptr;
  if (Status s = read_reduction(op, entered->handle(), *element, call, late_factor); !s.is_ok()) return s;
  return submit(Issued{.on = entered.take(), .call = call, .late_factor = late_factor, .stream = found.take()});
}

}  // namespace

extern "C" {

ncclResult_t pncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream) {
  return guarded("ncclAllReduce",
                 [&] { return poison_group(all_reduce(sendbuff, recvbuff, count, datatype, op, comm, stream)); });
}

[[gnu::weak, gnu::alias("pncclAllReduce")]] decltype(pncclAllReduce) ncclAllReduce;

}  // extern "C"
