// SPDX-License-Identifier: Apache-2.0
// New communicators out of unique ids.
#include <cstring>
#include <utility>
#include <vector>

#include "api/config.h"
#include "api/errors.h"
#include "api/group.h"
#include "api/handle.h"
#include "comm/bootstrap.h"
#include "comm/unique_id.h"

namespace {

using namespace shoal;
using namespace shoal::api;

using Ids = std::vector<comm::UniqueId>;
using Made = Result<std::unique_ptr<comm::Communicator>>;

Result<Ids> decode(const ncclUniqueId* ids, int count) {
  Ids decoded;
  for (int i = 0; i < count; ++i) {
    Result<comm::UniqueId> id = comm::UniqueId::decode(std::span<const char, NCCL_UNIQUE_ID_BYTES>(ids[i].internal));
    if (!id.is_ok()) return id.status();
    decoded.push_back(id.take());
  }
  return decoded;
}

Status initialise(const char* function, ncclComm_t* out, int world, int rank, const ncclUniqueId* ids, int count,
                  const ncclConfig_t* config) {
  if (Status s = require(out, "comm"); !s.is_ok()) return s;
  if (world < 1) return fail(Code::invalid_argument, "nranks is {}, must be at least 1", world);
  if (rank < 0 || rank >= world) return fail(Code::invalid_argument, "rank is {}, must be 0 .. {}", rank, world - 1);
  if (Status s = require(ids, "commIds"); !s.is_ok()) return s;
  if (count < 1 || count > world)
    return fail(Code::invalid_argument, "nId is {}, must be 1 .. {}, the number of ranks", count, world);
  const Result<ncclConfig_t> read = read_config(config);
  if (!read.is_ok()) return read.status();
  const Result<bool> blocking = is_blocking(*read);
  if (!blocking.is_ok()) return blocking.status();
  Result<Ids> decoded = decode(ids, count);
  if (!decoded.is_ok()) return decoded.status();
  Making making{.function = function, .out = out, .config = *read, .blocking = *blocking};
  making.make = [ids = decoded.take(), rank, world](const comm::Interrupted& interrupted) {
    return comm::Communicator::create(ids, {rank}, {world}, *environment(), interrupted);
  };
  return submit(std::move(making));
}

Status initialise_all(ncclComm_t* comms, int count, const int* devices) {
  if (Status s = require(comms, "comm"); !s.is_ok()) return s;
  if (count < 1) return fail(Code::invalid_argument, "ndev is {}, must be at least 1", count);
  for (int i = 0; devices != nullptr && i < count; ++i)
    if (devices[i] < 0) return fail(Code::invalid_argument, "devlist[{}] is {}", i, devices[i]);
  if (!environment().is_ok()) return environment().status();
  const Result<comm::UniqueId> id = comm::make_unique_id(*environment());
  if (!id.is_ok()) return id.status();
  std::vector<Making> all;
  for (int i = 0; i < count; ++i) {
    Making making{.function = "ncclCommInitAll",
                  .out = &comms[i],
                  .config = NCCL_CONFIG_INITIALIZER,
                  .device = devices != nullptr ? devices[i] : i};
    making.make = [id = *id, i, count](const comm::Interrupted& interrupted) {
      return comm::Communicator::create({&id, 1}, {i}, {count}, *environment(), interrupted);
    };
    all.push_back(std::move(making));
  }
  Status made = make_all(std::move(all));
  for (int i = 0; !made.is_ok() && i < count; ++i)
    if (comms[i] != nullptr) (void)end_handle(std::exchange(comms[i], nullptr), true);
  return made;
}

}  // namespace

extern "C" {

ncclResult_t pncclGetUniqueId(ncclUniqueId* uniqueId) {
  return guarded("ncclGetUniqueId", [&]() -> Status {
    if (Status s = require(uniqueId, "uniqueId"); !s.is_ok()) return s;
    if (!environment().is_ok()) return environment().status();
    Result<comm::UniqueId> made = comm::make_unique_id(*environment());
    if (!made.is_ok()) return made.status();
    const auto bytes = made->encode();
    std::memcpy(uniqueId->internal, bytes.data(), bytes.size());
    return {};
  });
}

ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return guarded("ncclCommInitRank",
                 [&] { return poison_group(initialise("ncclCommInitRank", comm, nranks, rank, &commId, 1, nullptr)); });
}

ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config) {
  return guarded("ncclCommInitRankConfig",
                 [&] { return poison_group(initialise("ncclCommInitRankConfig", comm, nranks, rank, &commId, 1, config)); });
}

ncclResult_t pncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                                       ncclConfig_t* config) {
  return guarded("ncclCommInitRankScalable", [&] {
    return poison_group(initialise("ncclCommInitRankScalable", newcomm, nranks, myrank, commIds, nId, config));
  });
}

ncclResult_t pncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return guarded("ncclCommInitAll", [&] { return initialise_all(comm, ndev, devlist); });
}

[[gnu::weak, gnu::alias("pncclGetUniqueId")]] decltype(pncclGetUniqueId) ncclGetUniqueId;
[[gnu::weak, gnu::alias("pncclCommInitRank")]] decltype(pncclCommInitRank) ncclCommInitRank;
[[gnu::weak, gnu::alias("pncclCommInitRankConfig")]] decltype(pncclCommInitRankConfig) ncclCommInitRankConfig;
[[gnu::weak, gnu::alias("pncclCommInitRankScalable")]] decltype(pncclCommInitRankScalable) ncclCommInitRankScalable;
[[gnu::weak, gnu::alias("pncclCommInitAll")]] decltype(pncclCommInitAll) ncclCommInitAll;

}  // extern "C"
