/* SPDX-License-Identifier: Apache-2.0
 * One process, one thread, several ranks: all communicators in one call, the calls of all ranks in one group, a stream for each.
 * Where NCCL's ranks are GPUs, these are just ranks; a stream is a thread that works through it. */
#include <shoal/shoal.h>

#include "example.h"

enum { kRanks = 4, kCount = 1 << 20 };

int main(void) {
  ncclComm_t comms[kRanks];
  cudaStream_t streams[kRanks];
  float *input[kRanks], *output[kRanks];
  must(ncclCommInitAll(comms, kRanks, NULL), "ncclCommInitAll");
  for (int r = 0; r < kRanks; ++r) {
    must(shoalStreamCreate(&streams[r]), "shoalStreamCreate");
    must(ncclMemAlloc((void**)&input[r], kCount * sizeof(float)), "ncclMemAlloc");
    must(ncclMemAlloc((void**)&output[r], kCount * sizeof(float)), "ncclMemAlloc");
    for (int i = 0; i < kCount; ++i) input[r][i] = (float)(r + i % 100);
  }

  /* Without the group the first call would wait for ranks whose calls come after it. */
  must(ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < kRanks; ++r)
    must(ncclAllReduce(input[r], output[r], kCount, ncclFloat, ncclSum, comms[r], streams[r]), "ncclAllReduce");
  must(ncclGroupEnd(), "ncclGroupEnd");

  /* The group's end has enqueued the work; each stream says when its rank's part is done. */
  for (int r = 0; r < kRanks; ++r) {
    must(shoalStreamSynchronize(streams[r]), "shoalStreamSynchronize");
    for (int i = 0; i < kCount; ++i) expect(output[r][i], (float)(0 + 1 + 2 + 3 + kRanks * (i % 100)), "sum");
  }
  for (int r = 0; r < kRanks; ++r) {
    must(ncclMemFree(input[r]), "ncclMemFree");
    must(ncclMemFree(output[r]), "ncclMemFree");
    must(shoalStreamDestroy(streams[r]), "shoalStreamDestroy");
    must(ncclCommDestroy(comms[r]), "ncclCommDestroy");
  }
  puts("one thread: ok");
  return 0;
}
