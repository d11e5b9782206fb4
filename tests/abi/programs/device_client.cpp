// SPDX-License-Identifier: Apache-2.0
// A program that asks for communication from inside GPU kernels, compiled with NCCL's own nccl_device.h on top of our nccl.h:
// gets refusals and zeros, each with a reason. Prints "all good", or what is wrong.
#include <nccl.h>

// What this one needs of the former, it does not include itself.
#include <nccl_device.h>

#include <cstdio>
#include <string>

namespace {

bool good = true;

void check(bool refused, const char* function) {
  if (refused && std::string(ncclGetLastError(nullptr)).rfind(std::string(function) + ": there is no communication", 0) == 0)
    return;
  std::printf("%s: %s\n", function, ncclGetLastError(nullptr));
  good = false;
}

bool empty(const ncclTeam_t& team) { return team.nRanks == 0 && team.rank == 0 && team.stride == 0; }

}  // namespace

int main() {
  ncclComm_t comm = nullptr;
  if (ncclCommInitAll(&comm, 1, nullptr) != ncclSuccess) return 1;
  const ncclTeam_t team{4, 1, 1};
  const ncclDevCommRequirements wanted{};
  ncclDevComm device_comm{};
  ncclDevResourceRequirements resources{};
  ncclLsaBarrierHandle barrier{};
  ncclGinBarrierHandle gin_barrier{};
  ncclLLA2AHandle exchange{};
  check(ncclDevCommCreate(comm, &wanted, &device_comm) == ncclInvalidUsage, "ncclDevCommCreate");
  check(ncclDevCommDestroy(comm, &device_comm) == ncclInvalidUsage, "ncclDevCommDestroy");
  check(empty(ncclTeamWorld(comm)), "ncclTeamWorld");
  check(empty(ncclTeamLsa(comm)), "ncclTeamLsa");
  check(empty(ncclTeamRail(comm)), "ncclTeamRail");
  check(ncclTeamRankToWorld(comm, team, 1) == 0, "ncclTeamRankToWorld");
  check(ncclTeamRankToLsa(comm, team, 1) == 0, "ncclTeamRankToLsa");
  check(ncclLsaBarrierCreateRequirement(team, 1, &barrier, &resources) == ncclInvalidUsage, "ncclLsaBarrierCreateRequirement");
  check(ncclGinBarrierCreateRequirement(comm, team, 1, &gin_barrier, &resources) == ncclInvalidUsage,
        "ncclGinBarrierCreateRequirement");
  check(ncclLLA2ACreateRequirement(1, 1, &exchange, &resources) == ncclInvalidUsage, "ncclLLA2ACreateRequirement");
  check(ncclLLA2ACalcSlots(8, 4) == 0, "ncclLLA2ACalcSlots");
  if (ncclCommDestroy(comm) != ncclSuccess) return 1;
  std::puts(good ? "all good" : "not good");
  return good ? 0 : 1;
}
