/* SPDX-License-Identifier: Apache-2.0
 * Compressed collectives: all-reduces of floating-point tensors that move less than the tensor, with what they remember kept
 * under the tensor's name. docs/compression.md shows what each compressor does, and costs. All functions return an ncclResult_t
 * and leave their outputs untouched on failure; ncclGetLastError says why. */
#ifndef SHOAL_COMPRESS_H_
#define SHOAL_COMPRESS_H_

#include <nccl.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- A compressor: a way to compress, its options, and this rank's memory of all tensors that went through it (residuals,
 * momentum, factors). It belongs to no communicator: after a shrink the survivors go on with theirs. */
typedef struct shoalCompressor* shoalCompressor_t;

/* name: "dgc", "powersgd", "onebit", "int8", ...: shoalDescribeCompressors lists all. options: "density=0.001,momentum=0.9", NULL
 * or
 * "" for the defaults. ncclInvalidArgument: no such compressor or option, or a value out of its range. */
SHOAL_API ncclResult_t shoalCompressorCreate(shoalCompressor_t* compressor, const char* name, const char* options);
/* Calls under way still end well. */
SHOAL_API ncclResult_t shoalCompressorDestroy(shoalCompressor_t compressor);
/* Forgets what is remembered of one tensor, or of all (key NULL). ncclInvalidUsage while a call of it runs. */
SHOAL_API ncclResult_t shoalCompressorReset(shoalCompressor_t compressor, const char* key);

/* How a call went, for this rank. */
typedef struct {
  uint64_t encodedBytes;  /* that its contribution was encoded to */
  uint64_t sentBytes;     /* payload of the messages that it sent in the call, as counted; memory that ranks of a host ... */
  uint64_t receivedBytes; /* ... read of each other is received and not sent */
  double ratio;           /* bytes of its contribution as it was / encodedBytes */
  double error; /* relative L2: |meant - encoded| / |meant|, where meant is the input (scaled, for an average) and what was
                   kept of earlier calls */
  double encodeSeconds; /* to select and encode */
  uint64_t selected;    /* elements sent, where only some are; else 0 */
  int dense;            /* 1: the call went uncompressed (not finite, too short or too dense to gain from it) */
} shoalCompressionReport;

/* recvbuff = sum or average (op: ncclSum, ncclAvg) over ranks of sendbuff, as far as the compressor says it now; what it holds
 * back comes in later calls. All ranks get the same bits. datatype: ncclFloat32, or ncclFloat16, ncclBfloat16, ncclFloat64, which
 * go through float32. In place if sendbuff is recvbuff. key: the tensor's name, under which state is kept: not the address. rows:
 * of the matrix that the tensor is, row by row; it divides count; 0 or 1: a vector. A tensor whose count or rows have changed
 * starts anew. Calls with one key follow each other. report: NULL, or written when the call has ended well (on a stream: when
 * that has passed it); measuring the error costs a pass. All ranks must use the same compressor, options, key and rows: else
 * ncclInvalidUsage, as for any other mismatch. */
SHOAL_API ncclResult_t shoalAllReduceCompressed(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                                ncclRedOp_t op, shoalCompressor_t compressor, const char* key, size_t rows,
                                                ncclComm_t comm, cudaStream_t stream, shoalCompressionReport* report);

/* ---- State as bytes, for checkpoints: versioned, with a digest, this rank's.
 * Save: bytes NULL asks for the size; else *size is the room, and becomes what was used (ncclInvalidArgument: too small).
 * Load replaces all state. ncclInvalidArgument, and nothing changes: spoilt bytes, another version, compressor or options.
 * ncclInvalidUsage while a call runs. */
SHOAL_API ncclResult_t shoalCompressorSave(shoalCompressor_t compressor, void* bytes, size_t* size);
SHOAL_API ncclResult_t shoalCompressorLoad(shoalCompressor_t compressor, const void* bytes, size_t size);

/* Every compressor in a line, and its options, a line each with default and range. Writes at most `bytes`, always terminated;
 * size (may be NULL) becomes the bytes of the whole text and its end. */
SHOAL_API ncclResult_t shoalDescribeCompressors(char* text, size_t bytes, size_t* size);

/* ---- What float32 looks like on the wire, for every later collective of a communicator: a codec of one value at a time or of
 * blocks ("fp16", "bf16", "fp8_e4m3", "int8", ...), or NULL or "none". Messages are encoded as they are sent and reduced as they
 * are decoded, hop by hop; every rank keeps of a result what the others get of it, so that all have the same bits. (Quantising
 * twice only, whatever the number of ranks, is what the compressor of that name does.) Calls of other types, in exact
 * numerics, point to point and compressed ones are as ever. Algorithms that read each other's memory, or whose result several
 * ranks finish, are not chosen: ncclInvalidUsage where NCCL_ALGO or ordered numerics leave no other. Like shoalCommSetNumerics:
 * all ranks make the same change between the same two calls. ncclInvalidArgument: no codec of this name, or one that rounds at
 * random. */
SHOAL_API ncclResult_t shoalCommSetWireFormat(ncclComm_t comm, const char* codec);
/* "none" or the codec's name: static text. */
SHOAL_API ncclResult_t shoalCommGetWireFormat(ncclComm_t comm, const char** codec);

#ifdef __cplusplus
}
#endif

#endif /* SHOAL_COMPRESS_H_ */
