// SPDX-License-Identifier: Apache-2.0
// Life and death of communicators, and what they say of themselves.
#include <cstring>
#include <thread>
#include <vector>

#include "api/config.h"
#include "api/errors.h"
#include "api/group.h"
#include "api/handle.h"
#include "comm/unique_id.h"

namespace {

using namespace shoal;
using namespace shoal::api;

Status initialise(ncclComm_t* out, int world, const ncclUniqueId& id, int rank, int device) {
  const Result<Environment>& settings = environment();
  if (!settings.is_ok()) return settings.status();
  Result<comm::UniqueId> decoded = comm::UniqueId::decode(std::span<const char, NCCL_UNIQUE_ID_BYTES>(id.internal));
  if (!decoded.is_ok()) return decoded.status();
  Result<std::unique_ptr<comm::Communicator>> made = comm::Communicator::create(*decoded, {rank}, {world}, *settings);
  if (!made.is_ok()) return made.status();
  *out = make_handle(made.take(), device);
  return {};
}

Status check_and_initialise(ncclComm_t* out, int world, const ncclUniqueId& id, int rank, const ncclConfig_t* config) {
  if (Status s = require(out, "comm"); !s.is_ok()) return s;
  if (world < 1) return fail(Code::invalid_argument, "nranks is {}, must be at least 1", world);
  if (rank < 0 || rank >= world) return fail(Code::invalid_argument, "rank is {}, must be 0 .. {}", rank, world - 1);
  if (Result<ncclConfig_t> read = read_config(config); !read.is_ok()) return read.status();
  return submit(Initialisation([=] { return initialise(out, world, id, rank, 0); }));
}

Status initialise_all(ncclComm_t* comms, int count, const int* devices) {
  if (Status s = require(comms, "comm"); !s.is_ok()) return s;
  if (count < 1) return fail(Code::invalid_argument, "ndev is {}, must be at least 1", count);
  for (int i = 0; devices != nullptr && i < count; ++i)
    if (devices[i] < 0) return fail(Code::invalid_argument, "devlist[{}] is {}", i, devices[i]);
  ncclUniqueId id;
  if (pncclGetUniqueId(&id) != ncclSuccess) return fail(Code::system_error, "{}", pncclGetLastError(nullptr));

  std::vector<ncclComm_t> made(static_cast<std::size_t>(count), nullptr);
  std::vector<Status> results(made.size());
  std::vector<std::thread> threads;
  threads.reserve(made.size());
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      const auto at = static_cast<std::size_t>(i);
      try {
        results[at] = initialise(&made[at], count, id, i, devices != nullptr ? devices[i] : i);
      } catch (const std::exception& error) {
        results[at] = Status(Code::system_error, error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : results)
    if (!status.is_ok()) {
      for (ncclComm_t each : made)
        if (each != nullptr) (void)end_handle(each, true);
      return status;
    }
  std::copy(made.begin(), made.end(), comms);
  return {};
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
  return guarded("ncclCommInitRank", [&] { return poison_group(check_and_initialise(comm, nranks, commId, rank, nullptr)); });
}

ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config) {
  return guarded("ncclCommInitRankConfig",
                 [&] { return poison_group(check_and_initialise(comm, nranks, commId, rank, config)); });
}

ncclResult_t pncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return guarded("ncclCommInitAll", [&] { return initialise_all(comm, ndev, devlist); });
}

ncclResult_t pncclCommFinalize(ncclComm_t comm) {
  return guarded("ncclCommFinalize", [&]() -> Status {
    Result<Entered> entered = Entered::enter(comm);
    return entered.is_ok() ? entered->communicator().drain() : entered.status();
  });
}

ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  return guarded("ncclCommDestroy", [&]() -> Status {
    if (comm == nullptr) return {};
    return end_handle(comm, false);
  });
}

ncclResult_t pncclCommAbort(ncclComm_t comm) {
  return guarded("ncclCommAbort", [&]() -> Status {
    if (comm == nullptr) return {};
    return end_handle(comm, true);
  });
}

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return guarded("ncclCommGetAsyncError", [&]() -> Status {
    if (Status s = require(asyncError, "asyncError"); !s.is_ok()) return s;
    Result<Entered> entered = Entered::enter(comm);
    if (!entered.is_ok()) return entered.status();
    const Status failure = entered->communicator().failure();
    *asyncError = failure.is_ok() ? ncclSuccess : report("ncclCommGetAsyncError", failure);
    return {};
  });
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int* count) {
  return guarded("ncclCommCount", [&]() -> Status {
    if (Status s = require(count, "count"); !s.is_ok()) return s;
    Result<Entered> entered = Entered::enter(comm);
    if (!entered.is_ok()) return entered.status();
    *count = entered->communicator().world().value;
    return {};
  });
}

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device) {
  return guarded("ncclCommCuDevice", [&]() -> Status {
    if (Status s = require(device, "device"); !s.is_ok()) return s;
    Result<Entered> entered = Entered::enter(comm);
    if (!entered.is_ok()) return entered.status();
    *device = entered->handle().device;
    return {};
  });
}

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank) {
  return guarded("ncclCommUserRank", [&]() -> Status {
    if (Status s = require(rank, "rank"); !s.is_ok()) return s;
    Result<Entered> entered = Entered::enter(comm);
    if (!entered.is_ok()) return entered.status();
    *rank = entered->communicator().rank().value;
    return {};
  });
}

[[gnu::weak, gnu::alias("pncclGetUniqueId")]] decltype(pncclGetUniqueId) ncclGetUniqueId;
[[gnu::weak, gnu::alias("pncclCommInitRank")]] decltype(pncclCommInitRank) ncclCommInitRank;
[[gnu::weak, gnu::alias("pncclCommInitRankConfig")]] decltype(pncclCommInitRankConfig) ncclCommInitRankConfig;
[[gnu::weak, gnu::alias("pncclCommInitAll")]] decltype(pncclCommInitAll) ncclCommInitAll;
[[gnu::weak, gnu::alias("pncclCommFinalize")]] decltype(pncclCommFinalize) ncclCommFinalize;
[[gnu::weak, gnu::alias("pncclCommDestroy")]] decltype(pncclCommDestroy) ncclCommDestroy;
[[gnu::weak, gnu::alias("pncclCommAbort")]] decltype(pncclCommAbort) ncclCommAbort;
[[gnu::weak, gnu::alias("pncclCommGetAsyncError")]] decltype(pncclCommGetAsyncError) ncclCommGetAsyncError;
[[gnu::weak, gnu::alias("pncclCommCount")]] decltype(pncclCommCount) ncclCommCount;
[[gnu::weak, gnu::alias("pncclCommCuDevice")]] decltype(pncclCommCuDevice) ncclCommCuDevice;
[[gnu::weak, gnu::alias("pncclCommUserRank")]] decltype(pncclCommUserRank) ncclCommUserRank;

}  // extern "C"
