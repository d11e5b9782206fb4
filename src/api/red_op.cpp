// SPDX-License-Identifier: Apache-2.0
#include "api/red_op.h"

#include <cstring>

#include "api/errors.h"

namespace shoal::api {
namespace {

Status create(ncclRedOp_t* out, const void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm) {
  if (Status s = require(out, "op"); !s.is_ok()) return s;
  if (Status s = require(scalar, "scalar"); !s.is_ok()) return s;
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  const std::optional<DataType> type = data_type_from(static_cast<int>(datatype));
  if (!type) return fail(Code::invalid_argument, "datatype is {}, must be 0 .. {}", static_cast<int>(datatype), kDataTypes - 1);
  shoalPremulSum made{.type = *type, .factor = {}};
  switch (residence) {
    case ncclScalarHostImmediate: std::memcpy(made.factor.data(), scalar, element_bytes(*type)); break;
    case ncclScalarDevice: made.late = scalar; break;
    default: return fail(Code::invalid_argument, "residence is {}, must be 0 or 1", static_cast<int>(residence));
  }
  ncclComm& handle = entered->handle();
  const std::lock_guard lock(handle.mutex);
  if (handle.next_operation == ncclMaxRedOp)
    return fail(Code::invalid_usage, "this communicator has made all its {} reductions", ncclMaxRedOp);
  const int value = handle.next_operation++;
  handle.operations.emplace(value, made);
  *out = static_cast<ncclRedOp_t>(value);
  return {};
}

Status destroy(ncclRedOp_t op, ncclComm_t comm) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  const int value = static_cast<int>(op);
  if (value >= 0 && value < ncclNumOps) return fail(Code::invalid_argument, "op {} is built in: it cannot be destroyed", value);
  ncclComm& handle = entered->handle();
  const std::lock_guard lock(handle.mutex);
  if (handle.operations.erase(value) == 0)
    return fail(Code::invalid_argument, "op {} is no reduction of this communicator", value);
  return {};
}

}  // namespace

Status read_reduction(ncclRedOp_t op, ncclComm& comm, DataType type, engine::Call& call, const void*& late_factor) {
  const World world = comm.communicator->world();
  const int value = static_cast<int>(op);
  if (value >= 0 && value < ncclNumOps) {
    call.op = static_cast<ReduceOp>(value);
    call.scale = device::make_scale(type, call.op, world, nullptr);
    return {};
  }
  const std::lock_guard lock(comm.mutex);
  const auto found = comm.operations.find(value);
  if (found == comm.operations.end())
    return fail(Code::invalid_argument, "op is {}: neither built in (0 .. {}) nor a live reduction of this communicator", value,
                ncclNumOps - 1);
  if (found->second.type != type)
    return fail(Code::invalid_argument, "op {} has a factor of type {}, the call is of type {}", value,
                name_of(found->second.type), name_of(type));
  call.op = ReduceOp::premul_sum;
  late_factor = found->second.late;
  if (late_factor == nullptr) {
    call.factor = found->second.factor;
    call.scale = device::make_scale(type, call.op, world, call.factor.data());
  }
  return {};
}

}  // namespace shoal::api

extern "C" {

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence,
                                       ncclComm_t comm) {
  return shoal::api::guarded("ncclRedOpCreatePreMulSum",
                             [&] { return shoal::api::create(op, scalar, datatype, residence, comm); });
}

ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return shoal::api::guarded("ncclRedOpDestroy", [&] { return shoal::api::destroy(op, comm); });
}

[[gnu::weak, gnu::alias("pncclRedOpCreatePreMulSum")]] decltype(pncclRedOpCreatePreMulSum) ncclRedOpCreatePreMulSum;
[[gnu::weak, gnu::alias("pncclRedOpDestroy")]] decltype(pncclRedOpDestroy) ncclRedOpDestroy;

}  // extern "C"
