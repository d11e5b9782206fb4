/* SPDX-License-Identifier: Apache-2.0
 * One rank a process, started by shoal-run, mpirun, srun or torchrun: shoal-run -n 3 ./one_process_a_rank
 * The launcher's variables say who this is; rank 0's unique id reaches the others over the launch. (A program that has MPI would
 * call ncclGetUniqueId on rank 0 and broadcast the 128 bytes.) */
#include <shoal/shoal.h>

#include "example.h"

int main(void) {
  shoalLaunch launch;
  ncclUniqueId id;
  ncclComm_t comm;
  must(shoalGetLaunch(&launch), "shoalGetLaunch");
  must(shoalLaunchUniqueId(&id), "shoalLaunchUniqueId");
  must(ncclCommInitRank(&comm, launch.world, id, launch.rank), "ncclCommInitRank");

  /* The null stream: done when the call returns. */
  float value = (float)(launch.rank + 1);
  must(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, NULL), "ncclAllReduce");
  expect(value, (float)(launch.world * (launch.world + 1) / 2), "sum");

  must(ncclCommDestroy(comm), "ncclCommDestroy");
  if (launch.rank == 0) puts("one process a rank: ok");
  return 0;
}
