// SPDX-License-Identifier: Apache-2.0
// ABI_FACTS names the function that this file is compiled to.
#include "abi/header_facts.h"

#include <nccl.h>

#include <cstddef>
#include <typeinfo>

#include "abi/exports.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace testing {
namespace {

#define SIZE(type) \
  facts.emplace_back("sizeof " #type, std::to_string(sizeof(type)) + " aligned to " + std::to_string(alignof(type)))
#define OFFSET(type, member) facts.emplace_back("offset of " #type "." #member, std::to_string(offsetof(type, member)))
#define VALUE(expression) facts.emplace_back(#expression, std::to_string(static_cast<long long>(expression)))
#define TYPE(function) facts.emplace_back("type of " #function, typeid(decltype(function)).name())

void structs(Facts& facts) {
  SIZE(ncclComm_t);
  SIZE(ncclWindow_t);
  SIZE(ncclUniqueId);
  SIZE(ncclConfig_t);
  SIZE(ncclSimInfo_t);
  OFFSET(ncclConfig_t, size);
  OFFSET(ncclConfig_t, magic);
  OFFSET(ncclConfig_t, version);
  OFFSET(ncclConfig_t, blocking);
  OFFSET(ncclConfig_t, cgaClusterSize);
  OFFSET(ncclConfig_t, minCTAs);
  OFFSET(ncclConfig_t, maxCTAs);
  OFFSET(ncclConfig_t, netName);
  OFFSET(ncclConfig_t, splitShare);
  OFFSET(ncclConfig_t, trafficClass);
  OFFSET(ncclConfig_t, commName);
  OFFSET(ncclConfig_t, collnetEnable);
  OFFSET(ncclConfig_t, CTAPolicy);
  OFFSET(ncclConfig_t, shrinkShare);
  OFFSET(ncclConfig_t, nvlsCTAs);
  OFFSET(ncclConfig_t, nChannelsPerNetPeer);
  OFFSET(ncclConfig_t, nvlinkCentricSched);
  OFFSET(ncclSimInfo_t, size);
  OFFSET(ncclSimInfo_t, magic);
  OFFSET(ncclSimInfo_t, version);
  OFFSET(ncclSimInfo_t, estimatedTime);
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  VALUE(config.size);
  VALUE(config.magic);
  VALUE(config.version);
  VALUE(config.blocking);
  VALUE(config.cgaClusterSize);
  VALUE(config.minCTAs);
  VALUE(config.maxCTAs);
  VALUE(config.netName == nullptr);
  VALUE(config.splitShare);
  VALUE(config.trafficClass);
  VALUE(config.commName == nullptr);
  VALUE(config.collnetEnable);
  VALUE(config.CTAPolicy);
  VALUE(config.shrinkShare);
  VALUE(config.nvlsCTAs);
  VALUE(config.nChannelsPerNetPeer);
  VALUE(config.nvlinkCentricSched);
  const ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  VALUE(info.size);
  VALUE(info.magic);
  VALUE(info.version);
  VALUE(info.estimatedTime);
}

void constants(Facts& facts) {
  VALUE(NCCL_MAJOR);
  VALUE(NCCL_MINOR);
  VALUE(NCCL_PATCH);
  facts.emplace_back("NCCL_SUFFIX", NCCL_SUFFIX);
  VALUE(NCCL_VERSION_CODE);
  VALUE(NCCL_VERSION(2, 8, 4));
  VALUE(NCCL_VERSION(2, 9, 6));
  VALUE(static_cast<ncclComm_t>(NCCL_COMM_NULL) == nullptr);
  VALUE(NCCL_UNIQUE_ID_BYTES);
  VALUE(NCCL_CONFIG_UNDEF_INT);
  VALUE(static_cast<const char*>(NCCL_CONFIG_UNDEF_PTR) == nullptr);
  VALUE(NCCL_SPLIT_NOCOLOR);
  VALUE(NCCL_UNDEF_FLOAT);
  VALUE(NCCL_WIN_DEFAULT);
  VALUE(NCCL_WIN_COLL_SYMMETRIC);
  VALUE(NCCL_WIN_REQUIRED_ALIGNMENT);
  VALUE(NCCL_CTA_POLICY_DEFAULT);
  VALUE(NCCL_CTA_POLICY_EFFICIENCY);
  VALUE(NCCL_CTA_POLICY_ZERO);
  VALUE(NCCL_SHRINK_DEFAULT);
  VALUE(NCCL_SHRINK_ABORT);
  VALUE(NCCL_REVOKE_DEFAULT);
}

void enums(Facts& facts) {
  SIZE(ncclResult_t);
  VALUE(ncclSuccess);
  VALUE(ncclUnhandledCudaError);
  VALUE(ncclSystemError);
  VALUE(ncclInternalError);
  VALUE(ncclInvalidArgument);
  VALUE(ncclInvalidUsage);
  VALUE(ncclRemoteError);
  VALUE(ncclInProgress);
  VALUE(ncclNumResults);
  SIZE(ncclRedOp_t);
  SIZE(ncclRedOp_dummy_t);
  VALUE(ncclNumOps_dummy);
  VALUE(ncclSum);
  VALUE(ncclProd);
  VALUE(ncclMax);
  VALUE(ncclMin);
  VALUE(ncclAvg);
  VALUE(ncclNumOps);
  VALUE(ncclMaxRedOp);
  SIZE(ncclDataType_t);
  VALUE(ncclInt8);
  VALUE(ncclChar);
  VALUE(ncclUint8);
  VALUE(ncclInt32);
  VALUE(ncclInt);
  VALUE(ncclUint32);
  VALUE(ncclInt64);
  VALUE(ncclUint64);
  VALUE(ncclFloat16);
  VALUE(ncclHalf);
  VALUE(ncclFloat32);
  VALUE(ncclFloat);
  VALUE(ncclFloat64);
  VALUE(ncclDouble);
  VALUE(ncclBfloat16);
  VALUE(ncclFloat8e4m3);
  VALUE(ncclFloat8e5m2);
  VALUE(ncclNumTypes);
  SIZE(ncclScalarResidence_t);
  VALUE(ncclScalarDevice);
  VALUE(ncclScalarHostImmediate);
}

// By the table: a function that a header lacks does not compile.
void functions(Facts& facts) {
#define SHOAL_EXPORT(name, header, since) OF_##header(name)
#define OF_nccl_h(name) \
  TYPE(name);           \
  TYPE(p##name);
#define OF_nccl_device_h(name)
#define OF_no_header(name)
#define OF_shoal_h(name)
#include "api/exports.inc"
}

}  // namespace

Facts ABI_FACTS() {
  Facts facts;
  structs(facts);
  constants(facts);
  enums(facts);
  functions(facts);
  return facts;
}

}  // namespace testing
