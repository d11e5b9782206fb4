// SPDX-License-Identifier: Apache-2.0
// A program for NCCL as users write them, compiled with our nccl.h and, where there is one, with NCCL's; runs with our
// libnccl.so.2. Three ranks in one thread; prints the version and "all good", or what is wrong.
#include <nccl.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 1000;

void must(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::printf("%s: %s: %s\n", what, ncclGetErrorString(result), ncclGetLastError(nullptr));
  std::exit(1);
}

void check(bool good, const char* what) {
  if (good) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

void init_with_config(ncclComm_t* comms) {
  ncclUniqueId id;
  must(ncclGetUniqueId(&id), "ncclGetUniqueId");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.minCTAs = 1;
  config.commName = "client";
  config.nvlinkCentricSched = 0;
  must(ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < kRanks; ++r) must(ncclCommInitRankConfig(&comms[r], kRanks, id, r, &config), "ncclCommInitRankConfig");
  must(ncclGroupEnd(), "ncclGroupEnd");
}

void all_reduce(ncclComm_t* comms, std::int32_t** buffers) {
  must(ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < kRanks; ++r)
    must(ncclAllReduce(buffers[r], buffers[r], kCount, ncclInt32, ncclSum, comms[r], nullptr), "ncclAllReduce");
}

void collectives(ncclComm_t* comms) {
  std::int32_t* buffers[kRanks];
  ncclWindow_t windows[kRanks] = {};
  void* handles[kRanks] = {};
  for (int r = 0; r < kRanks; ++r) {
    void* memory = nullptr;
    must(ncclMemAlloc(&memory, kCount * sizeof(std::int32_t)), "ncclMemAlloc");
    buffers[r] = static_cast<std::int32_t*>(memory);
    for (std::size_t i = 0; i < kCount; ++i) buffers[r][i] = static_cast<std::int32_t>(i) * (r + 1);
    must(ncclCommRegister(comms[r], memory, kCount * sizeof(std::int32_t), &handles[r]), "ncclCommRegister");
  }
  must(ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < kRanks; ++r)
    must(ncclCommWindowRegister(comms[r], buffers[r], 4000, &windows[r], NCCL_WIN_COLL_SYMMETRIC), "ncclCommWindowRegister");
  must(ncclGroupEnd(), "windows");

  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  all_reduce(comms, buffers);
  must(ncclGroupSimulateEnd(&info), "ncclGroupSimulateEnd");
  check(info.estimatedTime > 0 && buffers[0][1] == 1, "the simulated group");
  all_reduce(comms, buffers);
  must(ncclGroupEnd(), "ncclGroupEnd");
  for (int r = 0; r < kRanks; ++r) {
    for (std::size_t i = 0; i < kCount; ++i) check(buffers[r][i] == static_cast<std::int32_t>(i) * 6, "a sum");
    must(ncclCommWindowDeregister(comms[r], windows[r]), "ncclCommWindowDeregister");
    must(ncclCommDeregister(comms[r], handles[r]), "ncclCommDeregister");
    must(ncclMemFree(buffers[r]), "ncclMemFree");
  }
}

}  // namespace

int main() {
  int version = 0;
  must(ncclGetVersion(&version), "ncclGetVersion");
  check(version == NCCL_VERSION_CODE, "the version");
  ncclComm_t comms[kRanks];
  init_with_config(comms);
  collectives(comms);
  for (int r = 0; r < kRanks; ++r) {
    int rank = -1, count = -1;
    must(ncclCommUserRank(comms[r], &rank), "ncclCommUserRank");
    must(ncclCommCount(comms[r], &count), "ncclCommCount");
    check(rank == r && count == kRanks, "rank or count");
    must(ncclCommDestroy(comms[r]), "ncclCommDestroy");
  }
  std::printf("version %d, all good\n", version);
  return 0;
}
