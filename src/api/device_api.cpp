// SPDX-License-Identifier: Apache-2.0
// The host's side of communication from inside GPU kernels, as NCCL's nccl_device.h declares it. Communicators of host memory
// have no such side: these functions are there for programs that ask for every name at load, and say why they can do nothing.
#include <nccl.h>

#include "api/errors.h"

extern "C" {

// nccl_device.h needs the CUDA headers; what matters here is that structs of these names are passed, and how.
struct ncclTeam {
  int nRanks, rank, stride;
};
struct ncclDevComm;
struct ncclDevCommRequirements;
struct ncclDevResourceRequirements;
struct ncclLsaBarrierHandle;
struct ncclGinBarrierHandle;
struct ncclLLA2AHandle;

SHOAL_NCCL(ncclResult_t, ncclDevCommCreate, (ncclComm_t comm, const ncclDevCommRequirements* requirements, ncclDevComm* out));
SHOAL_NCCL(ncclResult_t, ncclDevCommDestroy, (ncclComm_t comm, const ncclDevComm* device_comm));
SHOAL_NCCL(ncclTeam, ncclTeamWorld, (ncclComm_t comm));
SHOAL_NCCL(ncclTeam, ncclTeamLsa, (ncclComm_t comm));
SHOAL_NCCL(ncclTeam, ncclTeamRail, (ncclComm_t comm));
SHOAL_NCCL(int, ncclTeamRankToWorld, (ncclComm_t comm, ncclTeam team, int rank));
SHOAL_NCCL(int, ncclTeamRankToLsa, (ncclComm_t comm, ncclTeam team, int rank));
SHOAL_NCCL(ncclResult_t, ncclLsaBarrierCreateRequirement,
           (ncclTeam team, int barriers, ncclLsaBarrierHandle* handle, ncclDevResourceRequirements* requirements));
SHOAL_NCCL(ncclResult_t, ncclGinBarrierCreateRequirement,
           (ncclComm_t comm, ncclTeam team, int barriers, ncclGinBarrierHandle* handle,
            ncclDevResourceRequirements* requirements));
SHOAL_NCCL(ncclResult_t, ncclLLA2ACreateRequirement,
           (int blocks, int slots, ncclLLA2AHandle* handle, ncclDevResourceRequirements* requirements));
SHOAL_NCCL(int, ncclLLA2ACalcSlots, (int elements, int element_bytes));

}  // extern "C"

namespace {

ncclResult_t no_device(const char* function) {
  return shoal::api::guarded(function, [] {
    return shoal::fail(
        shoal::Code::invalid_usage,
        "there is no communication from inside GPU kernels: communicators are of host memory; use the calls of nccl.h");
  });
}

// For functions that have no result code: zeros, and the text of the last error.
template <typename T>
T nothing(const char* function) {
  (void)no_device(function);
  return {};
}

}  // namespace

extern "C" {

ncclResult_t pncclDevCommCreate(ncclComm_t, const ncclDevCommRequirements*, ncclDevComm*) {
  return no_device("ncclDevCommCreate");
}
ncclResult_t pncclDevCommDestroy(ncclComm_t, const ncclDevComm*) { return no_device("ncclDevCommDestroy"); }
ncclTeam pncclTeamWorld(ncclComm_t) { return nothing<ncclTeam>("ncclTeamWorld"); }
ncclTeam pncclTeamLsa(ncclComm_t) { return nothing<ncclTeam>("ncclTeamLsa"); }
ncclTeam pncclTeamRail(ncclComm_t) { return nothing<ncclTeam>("ncclTeamRail"); }
int pncclTeamRankToWorld(ncclComm_t, ncclTeam, int) { return nothing<int>("ncclTeamRankToWorld"); }
int pncclTeamRankToLsa(ncclComm_t, ncclTeam, int) { return nothing<int>("ncclTeamRankToLsa"); }
ncclResult_t pncclLsaBarrierCreateRequirement(ncclTeam, int, ncclLsaBarrierHandle*, ncclDevResourceRequirements*) {
  return no_device("ncclLsaBarrierCreateRequirement");
}
ncclResult_t pncclGinBarrierCreateRequirement(ncclComm_t, ncclTeam, int, ncclGinBarrierHandle*, ncclDevResourceRequirements*) {
  return no_device("ncclGinBarrierCreateRequirement");
}
ncclResult_t pncclLLA2ACreateRequirement(int, int, ncclLLA2AHandle*, ncclDevResourceRequirements*) {
  return no_device("ncclLLA2ACreateRequirement");
}
int pncclLLA2ACalcSlots(int, int) { return nothing<int>("ncclLLA2ACalcSlots"); }

[[gnu::weak, gnu::alias("pncclDevCommCreate")]] decltype(pncclDevCommCreate) ncclDevCommCreate;
[[gnu::weak, gnu::alias("pncclDevCommDestroy")]] decltype(pncclDevCommDestroy) ncclDevCommDestroy;
[[gnu::weak, gnu::alias("pncclTeamWorld")]] decltype(pncclTeamWorld) ncclTeamWorld;
[[gnu::weak, gnu::alias("pncclTeamLsa")]] decltype(pncclTeamLsa) ncclTeamLsa;
[[gnu::weak, gnu::alias("pncclTeamRail")]] decltype(pncclTeamRail) ncclTeamRail;
[[gnu::weak, gnu::alias("pncclTeamRankToWorld")]] decltype(pncclTeamRankToWorld) ncclTeamRankToWorld;
[[gnu::weak, gnu::alias("pncclTeamRankToLsa")]] decltype(pncclTeamRankToLsa) ncclTeamRankToLsa;
[[gnu::weak,
  gnu::alias("pncclLsaBarrierCreateRequirement")]] decltype(pncclLsaBarrierCreateRequirement) ncclLsaBarrierCreateRequirement;
[[gnu::weak,
  gnu::alias("pncclGinBarrierCreateRequirement")]] decltype(pncclGinBarrierCreateRequirement) ncclGinBarrierCreateRequirement;
[[gnu::weak, gnu::alias("pncclLLA2ACreateRequirement")]] decltype(pncclLLA2ACreateRequirement) ncclLLA2ACreateRequirement;
[[gnu::weak, gnu::alias("pncclLLA2ACalcSlots")]] decltype(pncclLLA2ACalcSlots) ncclLLA2ACalcSlots;

}  // extern "C"
