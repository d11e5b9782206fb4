// SPDX-License-Identifier: Apache-2.0
// What it takes to have a communicator ready: seconds from main() to the end of the first all-reduce (of one float), and the
// memory of the process then. Every rank prints a line, "init RANK SECONDS RSS_KB PSS_KB".
//
//   shoal-run -n 8 --no-label shoal-bench-init
#include <nccl.h>
#include <shoal/shoal.h>

#include <cstdio>

#include "perf/peers/footprint.h"

int main() {
  const double started = seconds_now();
  ncclComm_t comm = nullptr;
  int rank = 0;
  const float one = 1;
  float sum = 0;
  const auto all_reduce = [&] { return ncclAllReduce(&one, &sum, 1, ncclFloat, ncclSum, comm, nullptr); };
  if (shoalCommInitLaunch(&comm) != ncclSuccess || ncclCommUserRank(comm, &rank) != ncclSuccess || all_reduce() != ncclSuccess) {
    std::fprintf(stderr, "shoal-bench-init: %s\n", ncclGetLastError(comm));
    return 1;
  }
  print_footprint(rank, seconds_now() - started);
  const bool met = all_reduce() == ncclSuccess;  // nobody's memory is shared by fewer while another one still counts
  return ncclCommDestroy(comm) == ncclSuccess && met ? 0 : 1;
}
