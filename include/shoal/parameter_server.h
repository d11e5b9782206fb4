/* SPDX-License-Identifier: Apache-2.0
 * A parameter server: workers push gradients to, and pull weights from, servers that hold the keys (elements) 0 .. keys-1 in
 * contiguous ranges. docs/parameter-server.md has the model, its guarantees and its costs.
 *
 * A group has `workers` + `servers` ranks: 0 .. workers-1 are the workers, the servers follow. All are made collectively from one
 * unique id (ncclGetUniqueId), which is used for nothing else. Functions return an ncclResult_t, leave their outputs untouched on
 * failure, and ncclGetLastError(NULL) says why. A worker's functions may be called by several threads; a request has its place in
 * the worker's order when the call returns. */
#ifndef SHOAL_PARAMETER_SERVER_H_
#define SHOAL_PARAMETER_SERVER_H_

#include <nccl.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shoalPs* shoalPs_t;

/* When an update becomes visible. */
typedef enum {
  /* Iteration t is applied once, when every worker has ended it; what is pulled in iteration t+1 has all of t and nothing of t+1.
   * Pushes are summed in the order of the workers' ranks: the same bits in every run. */
  shoalPsSync = 0,
  /* Every push is applied when it has arrived; a pull takes what is there. */
  shoalPsAsync = 1,
  /* Stale synchronous parallel: as shoalPsAsync, but a worker at clock c is served only once all workers have reached clock
   * c - staleness. What it pulls then has every update of clocks up to c - staleness - 1, and perhaps newer ones. */
  shoalPsSsp = 2
} shoalPsMode;

/* What a server does with a gradient: a sum over the workers in shoalPsSync, else one worker's push. */
typedef enum {
  /* value = the sum of the iteration's pushes, 0 where there are none: a summation service. shoalPsSync only. */
  shoalPsOptimizerSum = 0,
  shoalPsOptimizerAdd = 1,   /* value += gradient */
  shoalPsOptimizerSgd = 2,   /* value -= learningRate * (gradient / workers that are in it) */
  shoalPsOptimizerCustom = 3 /* update() */
} shoalPsOptimizer;

/* Changes the weights of keys firstKey .. firstKey+count-1 in place; runs on the servers. `workers`: how many are in the
 * gradient; `iteration`: which one is being applied (shoalPsSync), or the pushing worker's clock. In shoalPsSync every key comes
 * once an iteration, pushed or not (gradient 0). A range may be split over calls, always at the same keys in shoalPsSync. Not 0:
 * the group fails. Must not call functions of the same group. */
typedef int (*shoalPsUpdateFn)(size_t firstKey, size_t count, void* weights, const void* gradient, int workers,
                               uint64_t iteration, void* user);

/* Set all to zero first: zero is a field's default, and where it is none it is refused. Ranks must agree on everything above
 * `window`; what differs is named. */
typedef struct {
  int workers;
  int servers;
  size_t keys;
  ncclDataType_t dtype; /* ncclFloat32 or ncclFloat64 */
  shoalPsMode mode;
  int staleness;        /* shoalPsSsp only */
  const size_t* shares; /* keys of each server in turn, `servers` numbers that add up to `keys`; NULL: equal shares */
  shoalPsOptimizer optimizer;
  double learningRate;
  /* Each rank's own. */
  int window;             /* worker: requests on their way before push and pull wait for room; 0: 64 */
  const void* initial;    /* server: values of all keys to start from, read during init; NULL: zeros */
  shoalPsUpdateFn update; /* server, shoalPsOptimizerCustom */
  void* user;
} shoalPsConfig;

/* Collective: returns when all ranks are in. */
SHOAL_API ncclResult_t shoalPsInit(shoalPs_t* ps, ncclUniqueId id, int rank, const shoalPsConfig* config);

/* A server: serves in the calling thread, returns when all workers have left, or with the group's failure. */
SHOAL_API ncclResult_t shoalPsServe(shoalPs_t ps);
/* A server beside a worker in one process: a thread of its own joins as `rank` and serves. Returns at once; shoalPsDestroy waits
 * for the workers to leave and returns how it ended. `initial` must stay until all ranks are in. */
SHOAL_API ncclResult_t shoalPsServeInBackground(shoalPs_t* ps, ncclUniqueId id, int rank, const shoalPsConfig* config);

/* A worker. Any range of keys, over any number of servers; asynchronous: returns a timestamp (from 1 on), and the memory belongs
 * to the library until that has been waited for. A push is complete when the servers have it (and have applied it, unless
 * shoalPsSync), a pull when the values are there. Each server's part of a pull is of one version: it has a push whole or not at
 * all. Requests are sent in order. `timestamp` may be NULL. */
SHOAL_API ncclResult_t shoalPsPush(shoalPs_t ps, size_t firstKey, size_t count, const void* values, uint64_t* timestamp);
SHOAL_API ncclResult_t shoalPsPull(shoalPs_t ps, size_t firstKey, size_t count, void* out, uint64_t* timestamp);
/* Sent when the request with timestamp `after` is complete (0: none); so is everything issued later. */
SHOAL_API ncclResult_t shoalPsPushAfter(shoalPs_t ps, size_t firstKey, size_t count, const void* values, uint64_t after,
                                        uint64_t* timestamp);
SHOAL_API ncclResult_t shoalPsPullAfter(shoalPs_t ps, size_t firstKey, size_t count, void* out, uint64_t after,
                                        uint64_t* timestamp);
SHOAL_API ncclResult_t shoalPsWait(shoalPs_t ps, uint64_t timestamp);

/* Ends this worker's iteration: its clock, 0 at first, goes up by one. Asynchronous. */
SHOAL_API ncclResult_t shoalPsClock(shoalPs_t ps);
/* This worker's clock, and the slowest worker's as the servers knew it when they served the pull that completed last (the
 * smallest of what they said). */
SHOAL_API ncclResult_t shoalPsClocks(shoalPs_t ps, uint64_t* own, uint64_t* slowest);

/* What went over the links of this rank so far. Payload is values alone; each message has a header besides, and messages without
 * payload (requests, acknowledgements, clocks) are all header. What the transport adds is not counted. */
typedef struct {
  uint64_t payloadBytesSent;
  uint64_t payloadBytesReceived;
  uint64_t payloadMessagesSent; /* messages with payload */
  uint64_t payloadMessagesReceived;
  uint64_t headerBytesSent;
  uint64_t headerBytesReceived;
  uint64_t messagesSent; /* all */
  uint64_t messagesReceived;
} shoalPsStatistics;
/* With rank `peer`, or with all of them together: -1. */
SHOAL_API ncclResult_t shoalPsStats(shoalPs_t ps, int peer, shoalPsStatistics* statistics);

/* Which keys a server (0 .. servers-1) holds under this configuration. */
SHOAL_API ncclResult_t shoalPsShare(const shoalPsConfig* config, int server, size_t* firstKey, size_t* count);

/* BytePS' shares for `workerMachines` machines that each run a worker and a server, and `spareMachines` that run a server only,
 * so that all ports are equally loaded: the first workerMachines entries of `shares` are the co-located servers, the spare ones
 * follow. */
SHOAL_API ncclResult_t shoalPsBalancedShares(size_t keys, int workerMachines, int spareMachines, size_t* shares);

/* A worker: waits for its requests and leaves; a worker that has left holds nobody back. A server: after shoalPsServe. NULL is
 * fine. Frees the handle in any case. */
SHOAL_API ncclResult_t shoalPsDestroy(shoalPs_t ps);
/* Leaves at once; all ranks' calls fail. Also from another thread, while one is inside a call. */
SHOAL_API ncclResult_t shoalPsAbort(shoalPs_t ps);

#ifdef __cplusplus
}
#endif

#endif /* SHOAL_PARAMETER_SERVER_H_ */
