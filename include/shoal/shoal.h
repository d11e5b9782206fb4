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

/* ---- Collectives that NCCL's API lacks. They belong into groups and onto streams like NCCL's. ------------------------------ */

/* All-gather of blocks of different lengths: recvbuff[displs[q] + i] = rank q's sendbuff[i], 0 <= i < recvcounts[q]. recvcounts
 * and displs (elements; NULL: the blocks follow each other) hold a number for every rank, read before the call returns;
 * recvcounts are the same on all ranks, and sendcount is this rank's. In place if sendbuff is recvbuff + displs[rank] elements.
 */
SHOAL_API ncclResult_t shoalAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                                       const size_t* displs, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/* All-to-all of blocks of different lengths: recvbuff[rdispls[q] + i] = rank q's sendbuff[its sdispls[rank] + i]. sendcounts[q]
 * on this rank must be recvcounts[rank] on rank q; any of them may be 0. Displacements in elements; NULL: the blocks follow each
 * other. The arrays are read before the call returns. Not in place. */
SHOAL_API ncclResult_t shoalAllToAllV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
                                      const size_t* recvcounts, const size_t* rdispls, ncclDataType_t datatype, ncclComm_t comm,
                                      cudaStream_t stream);

/* Returns (or passes on the stream) when every rank has come to it. */
SHOAL_API ncclResult_t shoalBarrier(ncclComm_t comm, cudaStream_t stream);

/* ---- What is promised of the bits of a reduction's result ------------------------------------------------------------------
 * fast: the same on all ranks. ordered: and for any count, slice, transport and choice of algorithm, at a given number of ranks.
 * exact: and for any number and order of ranks: the true sum (or average), rounded once; floating-point sums and averages only,
 * at the price of more bytes. SHOAL_NUMERICS says in which mode communicators start. Set is no collective, but all ranks must
 * make the same change between the same two calls; a call takes the mode in which it is issued. */
typedef enum { shoalFast = 0, shoalOrdered = 1, shoalExact = 2 } shoalNumerics;
SHOAL_API ncclResult_t shoalCommSetNumerics(ncclComm_t comm, shoalNumerics mode);
SHOAL_API ncclResult_t shoalCommGetNumerics(ncclComm_t comm, shoalNumerics* mode);
/* NCCL's reductions with a mode of their own. */
SHOAL_API ncclResult_t shoalAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                                      shoalNumerics mode, ncclComm_t comm, cudaStream_t stream);
SHOAL_API ncclResult_t shoalReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                                   int root, shoalNumerics mode, ncclComm_t comm, cudaStream_t stream);
SHOAL_API ncclResult_t shoalReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                                          ncclRedOp_t op, shoalNumerics mode, ncclComm_t comm, cudaStream_t stream);

/* ---- Why does this call run as it does? ------------------------------------------------------------------------------------
 * Lists every algorithm of the collective ("all_reduce", "all_gather", ...) with its predicted time, rounds, bytes sent and
 * memory for a call of `count` elements (of the vector, or of a block) as `comm` would run it now, which one wins, and why the
 * others do not run. Local: any rank may ask alone. Writes at most `bytes`, always terminated. */
SHOAL_API ncclResult_t shoalExplain(ncclComm_t comm, const char* collective, size_t count, ncclDataType_t datatype, int root,
                                    char* text, size_t bytes);

/* ---- Text about this machine: cores and caches, memory, transports; three lines. Writes at most `bytes`, always terminated. */
SHOAL_API ncclResult_t shoalDescribeMachine(char* text, size_t bytes);

/* The version of Shoal itself: "0.1.0". */
SHOAL_API const char* shoalVersion(void);

#ifdef __cplusplus
}
#endif

#endif /* SHOAL_SHOAL_H_ */
