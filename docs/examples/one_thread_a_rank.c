/* SPDX-License-Identifier: Apache-2.0
 * One process, a thread for each rank. The threads need no groups: each waits in its own call. */
#include <pthread.h>

#include "example.h"

enum { kRanks = 3, kCount = 1000 };

static ncclUniqueId id; /* made before the threads are started */

static void* run(void* argument) {
  const int rank = *(const int*)argument;
  ncclComm_t comm;
  must(ncclCommInitRank(&comm, kRanks, id, rank), "ncclCommInitRank");

  float values[kCount], gathered[kRanks * kCount];
  for (int i = 0; i < kCount; ++i) values[i] = (float)(rank * kCount + i);
  must(ncclAllGather(values, gathered, kCount, ncclFloat, comm, NULL), "ncclAllGather");
  for (int i = 0; i < kRanks * kCount; ++i) expect(gathered[i], (float)i, "gathered");

  must(ncclCommDestroy(comm), "ncclCommDestroy");
  return NULL;
}

int main(void) {
  pthread_t threads[kRanks];
  int ranks[kRanks];
  must(ncclGetUniqueId(&id), "ncclGetUniqueId");
  for (int r = 0; r < kRanks; ++r) {
    ranks[r] = r;
    if (pthread_create(&threads[r], NULL, run, &ranks[r]) != 0) return 1;
  }
  for (int r = 0; r < kRanks; ++r)
    if (pthread_join(threads[r], NULL) != 0) return 1;
  puts("one thread a rank: ok");
  return 0;
}
