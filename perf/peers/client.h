// SPDX-License-Identifier: Apache-2.0
// The measuring half of a client of a peer library, with nccl-tests' definitions of size and time: out of place, float sum,
// back-to-back calls after a warm-up, the time a call takes averaged over the ranks. C and C++.
//
//   PROGRAM ... COLLECTIVE MIN_BYTES MAX_BYTES FACTOR ITERATIONS WARMUP SECONDS [fresh]
//
// Rank 0 prints "BYTES MICROSECONDS" for every size. SECONDS bounds what is timed for a size: where ITERATIONS calls would take
// longer there are fewer, but at least 3. fresh: inputs are rewritten by their owner before each timed call, and only the call is
// timed. Sizes are of the whole array, so that a block of all-gather, reduce-scatter and all-to-all is a rank's share of it.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "footprint.h"

struct client {
  int rank, ranks;
  const char* collective;
  void* library;  // whatever `call` needs
  // One call on arrays of `count` elements.
  void (*call)(struct client* self, float* in, float* out, size_t count);
  // The sum of all ranks' values; nobody returns before all have come.
  double (*sum)(struct client* self, double mine);
};

static inline int knows_collective(const char* name) {
  static const char* const kNames[] = {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce"};
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; i++)
    if (!strcmp(name, kNames[i])) return 1;
  return 0;
}

// Like shoal-perf's own buffers: whole pages, huge ones asked for. NULL: there is no memory.
static inline float* make_array(size_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, (size_t)2 << 20, bytes)) return NULL;
  madvise(memory, bytes, MADV_HUGEPAGE);
  memset(memory, 0, bytes);
  return (float*)memory;
}

static inline void fill(float* array, size_t count, float value) {
  for (size_t i = 0; i < count; i++) array[i] = value;
}

// Seconds a call on this rank.
static inline double timed(struct client* c, float* in, float* out, size_t count, long calls, int fresh) {
  double spent = 0;
  c->sum(c, 0);
  if (!fresh) {
    const double start = seconds_now();
    for (long i = 0; i < calls; i++) c->call(c, in, out, count);
    return (seconds_now() - start) / (double)calls;
  }
  for (long i = 0; i < calls; i++) {
    fill(in, count, (float)(c->rank + 1));
    c->sum(c, 0);
    const double start = seconds_now();
    c->call(c, in, out, count);
    spent += seconds_now() - start;
  }
  return spent / (double)calls;
}

static inline long at_most(long most, double seconds, double each) {
  const double fit = each > 0 ? seconds / each : (double)most;
  return fit < 3 ? (most < 3 ? most : 3) : fit < (double)most ? (long)fit : most;
}

// The exit code of the process: 0, 1 without memory or with wrong sums, 2 after arguments that make no sense.
static inline int measure(struct client* c, int argc, char** argv) {
  if (argc < 7 || argc > 8 || !knows_collective(argv[0]) || (argc == 8 && strcmp(argv[7], "fresh") != 0)) {
    if (c->rank == 0)
      fprintf(stderr,
              "usage: ... all_reduce|all_gather|reduce_scatter|alltoall|broadcast|reduce MIN_BYTES MAX_BYTES FACTOR "
              "ITERATIONS WARMUP SECONDS [fresh]\n");
    return 2;
  }
  c->collective = argv[0];
  const size_t low = strtoull(argv[1], NULL, 10), high = strtoull(argv[2], NULL, 10), factor = strtoull(argv[3], NULL, 10);
  const long iterations = atol(argv[4]), warmup = atol(argv[5]);
  const double seconds = atof(argv[6]);
  const int fresh = argc == 8;
  if (low < sizeof(float) || factor < 2 || iterations < 1 || warmup < 1 || !(seconds > 0)) {
    if (c->rank == 0)
      fprintf(stderr, "%s: sizes of at least 4 bytes, a factor of at least 2, and all else above 0\n", c->collective);
    return 2;
  }
  float *in = make_array(high), *out = make_array(high);
  if (!in || !out) {
    fprintf(stderr, "rank %d: no memory for two arrays of %zu bytes\n", c->rank, high);
    return 1;
  }
  fill(in, high / sizeof(float), (float)(c->rank + 1));
  const float expected = (float)(c->ranks * (c->ranks + 1) / 2);
  for (size_t bytes = low; bytes <= high; bytes *= factor) {
    const size_t count = bytes / sizeof(float);
    // All ranks make as many calls: the number comes from the mean over the ranks.
    timed(c, in, out, count, 1, 0);
    double each = c->sum(c, timed(c, in, out, count, 1, 0)) / c->ranks;
    each = c->sum(c, timed(c, in, out, count, at_most(warmup, seconds / 4, each), fresh)) / c->ranks;
    each = c->sum(c, timed(c, in, out, count, at_most(iterations, seconds, each), fresh)) / c->ranks;
    for (size_t i = 0; !strcmp(c->collective, "all_reduce") && i < count; i += 1 + count / 64)
      if (out[i] != expected) {
        fprintf(stderr, "rank %d: element %zu of %zu is %g, not %g\n", c->rank, i, count, (double)out[i], (double)expected);
        return 1;
      }
    if (c->rank == 0) printf("%zu %.4f\n", bytes, each * 1e6), fflush(stdout);
  }
  free(in);
  free(out);
  return 0;
}
