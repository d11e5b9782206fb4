/* SPDX-License-Identifier: Apache-2.0
 * Shoal's own C API: what NCCL's lacks. Host streams and events, launch environments, and text about this machine.
 * All functions return an ncclResult_t and leave their outputs untouched on failure; ncclGetLastError says why. */
#ifndef SHOAL_SHOAL_H_
#define SHOAL_SHOAL_H_

#include <nccl.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Host streams -------------------------------------------------------------------------------------------------------
 * A stream runs its work in order on a thread of its own. Pass it wherever NCCL takes a cudaStream_t: the call returns at once
 * and the buffers are busy until the stream has passed it. Functions are safe from any thread; Destroy waits for the work. */
SHOAL_API ncclResult_t shoalStreamCreate(cudaStream_t* stream);
SHOAL_API ncclResult_t shoalStreamDestroy(cudaStream_t stream);
/* Waits until all work enqueued before the call is done. */
SHOAL_API ncclResult_t shoalStreamSynchronize(cudaStream_t stream);
/* ncclSuccess if all work is done, else ncclInProgress. */
SHOAL_API ncclResult_t shoalStreamQuery(cudaStream_t stream);
/* Enqueues fn(argument). */
SHOAL_API ncclResult_t shoalStreamLaunch(cudaStream_t stream, void (*fn)(void*), void* argument);

/* ---- Events: a place in a stream's order ---------------------------------------------------------------------------------
 * An event that was never recorded counts as done. */
typedef struct shoalEvent* shoalEvent_t;
SHOAL_API ncclResult_t shoalEventCreate(shoalEvent_t* event);
SHOAL_API ncclResult_t shoalEventDestroy(shoalEvent_t event);
SHOAL_API ncclResult_t shoalEventRecord(shoalEvent_t event, cudaStream_t stream);
SHOAL_API ncclResult_t shoalEventQuery(shoalEvent_t event);
SHOAL_API ncclResult_t shoalEventSynchronize(shoalEvent_t event);
/* Work enqueued on `stream` after this call starts when the event's last recording has passed. */
SHOAL_API ncclResult_t shoalStreamWaitEvent(cudaStream_t stream, shoalEvent_t event);
/* Milliseconds between two recordings that have passed; ncclInProgress if one has not. */
SHOAL_API ncclResult_t shoalEventElapsedMs(double* milliseconds, shoalEvent_t start, shoalEvent_t stop);

/* ---- Launch --------------------------------------------------------------------------------------------------------------
 * Who am I? Read from the environment in this order: SHOAL_RANK/SHOAL_WORLD_SIZE (shoal-run), torchrun, Open MPI, MPICH and
 * Hydra (PMI), Slurm (inside a step); else one rank. A half-set or contradictory environment is ncclInvalidUsage. */
typedef struct {
  int rank;
  int world;
  int local_rank; /* among the ranks of this host */
  int local_world;
  const char* launcher; /* static text: "shoal-run", "torchrun", "openmpi", "mpich", "slurm", "none" */
} shoalLaunch;
SHOAL_API ncclResult_t shoalGetLaunch(shoalLaunch* launch);

/* Collective over all ranks of the launch: all get the same fresh unique id, without MPI or a store. Meets at
 * SHOAL_RENDEZVOUS (host:port), else MASTER_ADDR:MASTER_PORT, else, when all ranks are of this host, at a socket named after
 * the job. May be called again for further communicators, in the same order on all ranks. */
SHOAL_API ncclResult_t shoalLaunchUniqueId(ncclUniqueId* id);

/* ---- Communicator of the launch
 * Joins all processes of the launch into one communicator: shoalLaunchUniqueId and ncclCommInitRank in one. */
SHOAL_API ncclResult_t shoalCommInitLaunch(ncclComm_t* comm);

/* ---- Text about this machine: cores and caches, memory, transports; three lines. Writes at most `bytes`, always terminated. */
SHOAL_API ncclResult_t shoalDescribeMachine(char* text, size_t bytes);

/* The version of Shoal itself: "0.1.0". */
SHOAL_API const char* shoalVersion(void);

#ifdef __cplusplus
}
#endif

#endif /* SHOAL_SHOAL_H_ */
