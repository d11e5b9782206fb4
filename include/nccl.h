/* SPDX-License-Identifier: Apache-2.0
 * Shoal's face for programs written for NCCL: all of NCCL 2.28.9's nccl.h, with its names, values and layouts. Compiles with and
 * without the CUDA headers. Buffers lie in host memory; a stream is one made by shoalStreamCreate (shoal/shoal.h). The null
 * stream means: done when the call (or the group) returns. docs/drop-in.md says where Shoal's answers differ from NCCL's.
 *
 * What a function needs and what it refuses stands beside it. Refusals are results, and ncclGetLastError says what was wrong:
 * ncclInvalidArgument for one argument that is wrong by itself (also a communicator that is not live), ncclInvalidUsage for a
 * call that does not fit what came before or what other ranks do, ncclRemoteError and ncclSystemError for what the world does.
 * A communicator is used by one thread at a time, except by Abort and GetAsyncError. */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>

#if defined(__has_include) && !defined(SHOAL_NO_CUDA_HEADERS)
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#define SHOAL_HAVE_CUDA_HEADERS 1
#endif
#endif
#ifndef SHOAL_HAVE_CUDA_HEADERS
/* The same type that the CUDA headers name, so that both kinds of translation unit link together. */
typedef struct CUstream_st* cudaStream_t;
#endif

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""
#define NCCL_VERSION_CODE 22809
#define NCCL_VERSION(X, Y, Z) (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))

#if defined(__GNUC__)
#define SHOAL_API __attribute__((visibility("default")))
#else
#define SHOAL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A communicator as one rank sees it. */
typedef struct ncclComm* ncclComm_t;
#define NCCL_COMM_NULL NULL
/* Memory that all ranks of a communicator have registered together. */
typedef struct ncclWindow_vidmem* ncclWindow_t;

/* What rank 0 hands to all ranks so that they find each other. It carries a secret key: treat it like a password. */
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1, /* a CUDA call failed */
  ncclSystemError = 2,        /* the operating system refused */
  ncclInternalError = 3,      /* a bug of the library */
  ncclInvalidArgument = 4,    /* one argument is wrong by itself */
  ncclInvalidUsage = 5,       /* the call does not fit what came before, or what other ranks do */
  ncclRemoteError = 6,        /* another rank died, left or failed */
  ncclInProgress = 7,         /* non-blocking communicator: ask again */
  ncclNumResults = 8
} ncclResult_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_SPLIT_NOCOLOR -1
#define NCCL_UNDEF_FLOAT -1.0f

/* How ncclCommWindowRegister registers. Symmetric memory begins at a multiple of the alignment, in bytes. */
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096
#define NCCL_SHRINK_DEFAULT 0x00 /* work that is pending finishes first */
#define NCCL_SHRINK_ABORT 0x01   /* revokes the communicator first */
#define NCCL_REVOKE_DEFAULT 0x00

#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

/* ncclCommShrink: wait for the parent's calls, or end them first. */
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01

/* ncclCommRevoke knows no other flag yet. */
#define NCCL_REVOKE_DEFAULT 0x00

/* Options of a communicator. Start from NCCL_CONFIG_INITIALIZER; a field that stays "undefined" takes its default. `size` and
 * `version` travel with the struct, so that callers built against an older or newer header are understood. */
typedef struct ncclConfig_v22800 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking; /* 1 (default): calls return when the work is enqueued; 0: they may return ncclInProgress */
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName;
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                                                            \
  {                                                                                                                        \
    sizeof(ncclConfig_t), 0xcafebeef, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_CONFIG_UNDEF_INT,             \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT                                                \
  }

/* What ncclGroupSimulateEnd answers. Start from NCCL_SIM_INFO_INITIALIZER. */
typedef struct ncclSimInfo_v22200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime; /* microseconds */
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER \
  { sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_UNDEF_FLOAT }

typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2, /* NaN propagates */
  ncclMin = 3, /* NaN propagates */
  ncclAvg =
      4, /* integers: the sum (wrapping) divided by the number of ranks, towards zero; never overflows on the way for floats */
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff >> (32 - 8 * sizeof(ncclRedOp_dummy_t)) /* user-made operations have values from ncclNumOps up */
} ncclRedOp_t;

typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

typedef enum {
  ncclScalarDevice = 0,       /* read when the collective runs */
  ncclScalarHostImmediate = 1 /* read before the creating call returns */
} ncclScalarResidence_t;

/* Every function also exists as pncclX at the same address: a tool may define ncclX and call pncclX. */
#define SHOAL_NCCL(result, name, arguments) \
  SHOAL_API result name arguments;          \
  SHOAL_API result p##name arguments

/* The version whose API this library covers, as an NCCL_VERSION code. */
SHOAL_NCCL(ncclResult_t, ncclGetVersion, (int* version));

/* A static text for any code, never NULL. */
SHOAL_NCCL(const char*, ncclGetErrorString, (ncclResult_t result));

/* The text of the last failed call of this thread, or of this process while the thread has none; never NULL. The argument is
 * ignored and may be NULL. */
SHOAL_NCCL(const char*, ncclGetLastError, (ncclComm_t comm));

/* Was to read NCCL_DEBUG again. Does nothing: the environment is read once a process. */
#if defined(__GNUC__)
#define SHOAL_DEPRECATED __attribute__((deprecated("the environment is read once a process")))
#else
#define SHOAL_DEPRECATED
#endif
SHOAL_DEPRECATED SHOAL_API void ncclResetDebugInit(void);
SHOAL_DEPRECATED SHOAL_API void pncclResetDebugInit(void);

/* Makes an id for one communicator and starts listening for its ranks in this process, which must live until all are in. */
SHOAL_NCCL(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * uniqueId));

/* Joins the communicator of `commId` as `rank` of `nranks`. Collective: returns when all ranks are in. A thread that makes
 * several ranks groups the calls (ncclGroupStart, ncclGroupEnd). */
SHOAL_NCCL(ncclResult_t, ncclCommInitRank, (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank));
SHOAL_NCCL(ncclResult_t, ncclCommInitRankConfig,
           (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config));

/* The same with up to one unique id a rank; all ranks pass the same `nId` ids in the same order. */
SHOAL_NCCL(ncclResult_t, ncclCommInitRankScalable,
           (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds, ncclConfig_t* config));

/* Makes all `ndev` ranks in this thread. On host memory the device list is only checked for negative entries; NULL: 0..ndev-1. */
SHOAL_NCCL(ncclResult_t, ncclCommInitAll, (ncclComm_t * comm, int ndev, const int* devlist));

/* Ends a communicator: Finalize waits for outstanding work of all ranks; Destroy frees (NULL is fine); Abort frees at once,
 * from any thread, and makes blocked calls of this and the other ranks return. */
SHOAL_NCCL(ncclResult_t, ncclCommFinalize, (ncclComm_t comm));
SHOAL_NCCL(ncclResult_t, ncclCommDestroy, (ncclComm_t comm));
SHOAL_NCCL(ncclResult_t, ncclCommAbort, (ncclComm_t comm));

/* New communicators out of the ranks of `comm`, which stays as it is. Every rank calls it; those with the same `color` (0 or
 * more) become one, numbered by `key`, equal keys by their rank in `comm`. With NCCL_SPLIT_NOCOLOR a rank gets NULL. `config`
 * NULL: as that of `comm`. A wrong argument of one rank is an error on all. Works while all ranks live, whatever failed or was
 * revoked. */
SHOAL_NCCL(ncclResult_t, ncclCommSplit, (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config));

/* A new communicator of all ranks of `comm` but those in the list, which need not live; called by those that stay, with the same
 * list in any order. Their order stays. */
SHOAL_NCCL(ncclResult_t, ncclCommShrink,
           (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm, ncclConfig_t* config,
            int shrinkFlags));

/* Ends the work of all ranks on the communicator with an error; afterwards it can be split, shrunk, destroyed or aborted. */
SHOAL_NCCL(ncclResult_t, ncclCommRevoke, (ncclComm_t comm, int revokeFlags));

/* The first failure of the communicator, or ncclSuccess; ncclInProgress while a non-blocking one is being made or has work that
 * is unfinished. Cheap, from any thread. */
SHOAL_NCCL(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* asyncError));

SHOAL_NCCL(ncclResult_t, ncclCommCount, (const ncclComm_t comm, int* count));
SHOAL_NCCL(ncclResult_t, ncclCommCuDevice, (const ncclComm_t comm, int* device));
SHOAL_NCCL(ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int* rank));

/* Memory for communication, at a multiple of 4096 bytes, in huge pages where it is large enough. A size of 0 is NULL.
 * ncclSystemError if there is not enough. Free takes what Alloc gave, or NULL, and nothing else. Any thread. */
SHOAL_NCCL(ncclResult_t, ncclMemAlloc, (void** ptr, size_t size));
SHOAL_NCCL(ncclResult_t, ncclMemFree, (void* ptr));

/* Tells the communicator of memory that will be used often. Local; changes no result. Any number of times for the same memory;
 * each handle is given back once (NULL is fine, one that is not of this communicator is ncclInvalidUsage), or with the
 * communicator. The memory must stay until then. */
SHOAL_NCCL(ncclResult_t, ncclCommRegister, (const ncclComm_t comm, void* buff, size_t size, void** handle));
SHOAL_NCCL(ncclResult_t, ncclCommDeregister, (const ncclComm_t comm, void* handle));

/* The same for memory of all ranks: collective, with the same size and flags on all of them, else ncclInvalidUsage on all. In a
 * group, `win` is set when it ends, and windows of one communicator are registered in the order of the calls. Deregister is
 * local, and takes a window once, or NULL. */
SHOAL_NCCL(ncclResult_t, ncclCommWindowRegister, (ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags));
SHOAL_NCCL(ncclResult_t, ncclCommWindowDeregister, (ncclComm_t comm, ncclWindow_t win));

/* A reduction that multiplies each rank's input by `*scalar` (of `datatype`) and sums. Belongs to `comm`; may be destroyed
 * right after the call that uses it. */
SHOAL_NCCL(ncclResult_t, ncclRedOpCreatePreMulSum,
           (ncclRedOp_t * op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm));
SHOAL_NCCL(ncclResult_t, ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm));

/* recvbuff[i] = op over all ranks of sendbuff[i], 0 <= i < count, on every rank the same bits. In place if the pointers are
 * equal; any other overlap is refused. */
SHOAL_NCCL(ncclResult_t, ncclAllReduce,
           (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
            cudaStream_t stream));

/* On `root`: recvbuff[i] = op over all ranks of sendbuff[i], 0 <= i < count; recvbuff is not looked at on other ranks. In place
 * if the pointers are equal. */
SHOAL_NCCL(ncclResult_t, ncclReduce,
           (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
            ncclComm_t comm, cudaStream_t stream));

/* recvbuff[i] = root's sendbuff[i], 0 <= i < count; sendbuff is looked at on `root` only. In place if the pointers are equal;
 * ncclBcast is always in place. */
SHOAL_NCCL(ncclResult_t, ncclBroadcast,
           (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
            cudaStream_t stream));
SHOAL_NCCL(ncclResult_t, ncclBcast,
           (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream));

/* recvbuff[i] = op over all ranks of sendbuff[rank * recvcount + i], 0 <= i < recvcount. In place if recvbuff is sendbuff +
 * rank * recvcount elements. */
SHOAL_NCCL(ncclResult_t, ncclReduceScatter,
           (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
            cudaStream_t stream));

/* recvbuff[q * sendcount + i] = rank q's sendbuff[i], 0 <= i < sendcount. In place if sendbuff is recvbuff + rank * sendcount
 * elements. */
SHOAL_NCCL(ncclResult_t, ncclAllGather,
           (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
            cudaStream_t stream));

/* recvbuff[q * count + i] = rank q's sendbuff[rank * count + i], 0 <= i < count. Not in place. */
SHOAL_NCCL(ncclResult_t, ncclAlltoAll,
           (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream));

/* On `root`: recvbuff[q * count + i] = rank q's sendbuff[i], 0 <= i < count. In place on the root if sendbuff is recvbuff +
 * root * count elements. */
SHOAL_NCCL(ncclResult_t, ncclGather,
           (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
            cudaStream_t stream));

/* recvbuff[i] = root's sendbuff[rank * count + i], 0 <= i < count. In place on the root if recvbuff is sendbuff + root * count
 * elements. */
SHOAL_NCCL(ncclResult_t, ncclScatter,
           (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
            cudaStream_t stream));

/* The k-th send from one rank to another meets the k-th receive there of the first; the numbers of bytes must agree. A send and a
 * receive that depend on each other belong into one group; the transfers of a group run after its collectives. `peer` may be the
 * rank itself, if send and receive are in one group. */
SHOAL_NCCL(ncclResult_t, ncclSend,
           (const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream));
SHOAL_NCCL(ncclResult_t, ncclRecv,
           (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream));

/* Calls between Start and the outermost End run together. Argument errors are returned at once and again by End. */
SHOAL_NCCL(ncclResult_t, ncclGroupStart, (void));
SHOAL_NCCL(ncclResult_t, ncclGroupEnd, (void));

/* Ends the outermost group without running it, and says how long it would have taken. */
SHOAL_NCCL(ncclResult_t, ncclGroupSimulateEnd, (ncclSimInfo_t * simInfo));

#ifdef __cplusplus
}
#endif

#endif /* NCCL_H_ */
