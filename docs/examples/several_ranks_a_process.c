/* SPDX-License-Identifier: Apache-2.0
 * Several ranks in each process, all in its one thread: shoal-run -n 2 ./several_ranks_a_process
 * Making the communicators is collective, so a thread that makes several groups them, as it groups their calls. */
#include <shoal/shoal.h>

#include "example.h"

enum { kHere = 2 };

int main(void) {
  shoalLaunch launch;
  ncclUniqueId id;
  must(shoalGetLaunch(&launch), "shoalGetLaunch");
  must(shoalLaunchUniqueId(&id), "shoalLaunchUniqueId");
  const int world = launch.world * kHere;

  ncclComm_t comms[kHere];
  must(ncclGroupStart(), "ncclGroupStart");
  for (int i = 0; i < kHere; ++i) must(ncclCommInitRank(&comms[i], world, id, launch.rank * kHere + i), "ncclCommInitRank");
  must(ncclGroupEnd(), "ncclGroupEnd");

  float values[kHere];
  must(ncclGroupStart(), "ncclGroupStart");
  for (int i = 0; i < kHere; ++i) {
    values[i] = (float)(launch.rank * kHere + i);
    must(ncclAllReduce(&values[i], &values[i], 1, ncclFloat, ncclMax, comms[i], NULL), "ncclAllReduce");
  }
  must(ncclGroupEnd(), "ncclGroupEnd");
  for (int i = 0; i < kHere; ++i) {
    expect(values[i], (float)(world - 1), "maximum");
    must(ncclCommDestroy(comms[i]), "ncclCommDestroy");
  }
  if (launch.rank == 0) puts("several ranks a process: ok");
  return 0;
}
