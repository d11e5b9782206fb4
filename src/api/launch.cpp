// SPDX-License-Identifier: Apache-2.0
// Launch environments, the machine, and the version, in the C API.
#include "comm/launch.h"

#include <shoal/shoal.h>

#include <cstdlib>
#include <cstring>

#include "api/errors.h"
#include "topo/machine.h"

namespace {

using namespace shoal;
using namespace shoal::api;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

Status unique_id_of(const comm::Launch& launch, ncclUniqueId& out) {
  if (!environment().is_ok()) return environment().status();
  Result<comm::UniqueId> id = comm::launch_unique_id(launch, *environment(), environment()->timeout_ms);
  if (!id.is_ok()) return id.status();
  const auto bytes = id->encode();
  std::memcpy(out.internal, bytes.data(), bytes.size());
  return {};
}

}  // namespace

extern "C" {

ncclResult_t shoalGetLaunch(shoalLaunch* launch) {
  return guarded("shoalGetLaunch", [&]() -> Status {
    if (Status s = require(launch, "launch"); !s.is_ok()) return s;
    Result<comm::Launch> found = comm::detect_launch(variable);
    if (!found.is_ok()) return found.status();
    *launch = {found->rank, found->world, found->local_rank, found->local_world, found->launcher};
    return {};
  });
}

ncclResult_t shoalLaunchUniqueId(ncclUniqueId* id) {
  return guarded("shoalLaunchUniqueId", [&]() -> Status {
    if (Status s = require(id, "id"); !s.is_ok()) return s;
    Result<comm::Launch> found = comm::detect_launch(variable);
    if (!found.is_ok()) return found.status();
    return unique_id_of(*found, *id);
  });
}

ncclResult_t shoalCommInitLaunch(ncclComm_t* comm) {
  ncclUniqueId id;
  comm::Launch launch;
  const ncclResult_t result = guarded("shoalCommInitLaunch", [&]() -> Status {
    if (Status s = require(comm, "comm"); !s.is_ok()) return s;
    Result<comm::Launch> found = comm::detect_launch(variable);
    if (!found.is_ok()) return found.status();
    launch = *found;
    return unique_id_of(launch, id);
  });
  return result != ncclSuccess ? result : pncclCommInitRank(comm, launch.world, id, launch.rank);
}

ncclResult_t shoalDescribeMachine(char* text, size_t bytes) {
  return guarded("shoalDescribeMachine", [&]() -> Status {
    if (Status s = require(text, "text"); !s.is_ok()) return s;
    if (bytes == 0) return fail(Code::invalid_argument, "bytes is 0");
    const std::string described = topo::describe_machine();
    const std::size_t n = std::min(described.size(), bytes - 1);
    std::memcpy(text, described.data(), n);
    text[n] = '\0';
    return {};
  });
}

const char* shoalVersion() { return SHOAL_VERSION; }

}  // extern "C"
