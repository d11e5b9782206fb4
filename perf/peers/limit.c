// SPDX-License-Identifier: Apache-2.0
// What this machine allows: float-sum all-reduces of two processes on two cores, written by hand, with nothing of a library in
// them: no choice, no check, no third rank. Where a library comes close, the rest is its price.
//
//   cc -O3 -march=native -o limit limit.c && ./limit private|mapped MIN_BYTES MAX_BYTES FACTOR SECONDS [fresh]
//
// Prints "WAY BYTES MICROSECONDS" for every way of doing it that suits the size; the least is the limit.
//
// private: arrays are each process's own, what both see is a small window between them.
//   publish    the input is put beside a flag, both add (up to 48 bytes that is one cache line)
//   exchangeN  the whole input goes through a ring of slots of N bytes, both add
//   pipelineN  each adds one half, which then goes back, both through rings, at the same time
//   pull       each reads the other's array (process_vm_readv), half of the inputs, then the other half of the sums
// mapped: arrays are where both can read and write them.
//   whole      both add everything
//   halves     each adds one half and writes it to both outputs
// "stream" in a name: outputs are written past the caches. fresh: see client.h. Needs AVX2; AVX-512 is used where there is some.
#define _GNU_SOURCE
#include <immintrin.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "footprint.h"

#ifdef __AVX512F__
typedef __m512 Vector;
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define STREAM _mm512_stream_ps
#define ADD _mm512_add_ps
#else
typedef __m256 Vector;
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define STREAM _mm256_stream_ps
#define ADD _mm256_add_ps
#endif

enum { kLanes = sizeof(Vector) / sizeof(float), kLine = 128, kDepth = 8, kMostSlot = 256 << 10, kMostPublished = 64 << 10 };

// A number that one process raises and the other awaits, alone in its pair of cache lines.
struct counter {
  _Alignas(kLine) _Atomic uint64_t value;
};

struct window {
  struct counter met[2], full[2], sums[2], empty[2];
  double seconds[2];
  _Atomic int wrong;
  pid_t pid[2];
  const float *in[2], *out[2];
  _Alignas(4096) char published[2][2][kMostPublished + kLine];  // by parity of the call and rank
  char inputs[2][kDepth * kMostSlot], halves[2][kDepth * kMostSlot];
};

static struct window* w;
static int me;                            // 0 or 1
static uint64_t meetings, calls, slices;  // so far
static const float* mapped_in[2];         // of both, where both are mapped
static float* mapped_out[2];
static float* scratch;

static void post(struct counter* counter, uint64_t value) { atomic_store_explicit(&counter->value, value, memory_order_release); }
static void await(struct counter* counter, uint64_t value) {
  while (atomic_load_explicit(&counter->value, memory_order_acquire) < value) {
  }
}
static void meet(void) {
  post(&w->met[me], ++meetings);
  await(&w->met[1 - me], meetings);
}
static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static void copy(float* to, const float* from, size_t n, int stream) {
  size_t i = 0;
  if (stream)
    for (; i + kLanes <= n; i += kLanes) STREAM(to + i, LOAD(from + i));
  for (; i + kLanes <= n; i += kLanes) STORE(to + i, LOAD(from + i));
  for (; i < n; i++) to[i] = from[i];
}

// to = also = a + b; `also` may be NULL.
static void add(float* to, float* also, const float* a, const float* b, size_t n, int stream) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vector sum = ADD(LOAD(a + i), LOAD(b + i));
    if (stream)
      STREAM(to + i, sum);
    else
      STORE(to + i, sum);
    if (also) STORE(also + i, sum);
  }
  for (; i < n; i++) {
    to[i] = a[i] + b[i];
    if (also) also[i] = to[i];
  }
}

struct way {
  const char* name;
  void (*call)(const struct way* way, float* out, const float* in, size_t n);
  int mapped;
  size_t from, to;  // [bytes] sizes that it is tried for
  size_t slot;      // [bytes]
  int stream;
};

static void publish(const struct way* way, float* out, const float* in, size_t n) {
  (void)way;
  const int parity = (int)(++calls & 1);  // the other may still read what the call before this one has published
  char *mine = w->published[parity][me], *other = w->published[parity][1 - me];
  const size_t head = n * sizeof(float) <= 48 ? 16 : kLine;
  memcpy(mine + head, in, n * sizeof(float));
  post((struct counter*)mine, calls);
  await((struct counter*)other, calls);
  add(out, NULL, in, (const float*)(other + head), n, 0);
}

// Waits until the slot of slice k is free: what `taken` counts has passed its last use.
static float* slot_of(char* ring, const struct way* way, uint64_t k, struct counter* taken) {
  if (taken && k >= kDepth) await(taken, k - kDepth + 1);
  return (float*)(ring + k % kDepth * way->slot);
}

static void exchange(const struct way* way, float* out, const float* in, size_t n) {
  const size_t step = way->slot / sizeof(float), count = (n + step - 1) / step;
  size_t sent = 0;
  for (size_t k = 0; k < count; k++) {
    for (; sent < count && sent < k + 2; sent++) {  // one slice ahead
      float* slot = slot_of(w->inputs[me], way, slices + sent, &w->empty[1 - me]);
      copy(slot, in + sent * step, least(step, n - sent * step), 0);
      post(&w->full[me], slices + sent + 1);
    }
    await(&w->full[1 - me], slices + k + 1);
    add(out + k * step, NULL, in + k * step, slot_of(w->inputs[1 - me], way, slices + k, NULL), least(step, n - k * step),
        way->stream);
    post(&w->empty[me], slices + k + 1);
  }
  slices += count;
}

// The half that process p adds up: its first element and its end.
static size_t first_of(int p, size_t n) { return p ? n / 2 & ~(size_t)15 : 0; }
static size_t end_of(int p, size_t n) { return p ? n : n / 2 & ~(size_t)15; }
// Elements of slice k of a half.
static size_t part(size_t k, size_t step, size_t length) { return k * step < length ? least(step, length - k * step) : 0; }

static void pipeline(const struct way* way, float* out, const float* in, size_t n) {
  const size_t step = way->slot / sizeof(float), longer = end_of(1, n) - first_of(1, n), count = (longer + step - 1) / step;
  const size_t mine = first_of(me, n), my_length = end_of(me, n) - mine;
  const size_t other = first_of(1 - me, n), other_length = end_of(1 - me, n) - other;
  for (size_t k = 0; k < count + 2; k++) {
    if (k < count) {  // the other's half of my input
      float* slot = slot_of(w->inputs[me], way, slices + k, &w->sums[1 - me]);
      copy(slot, in + other + k * step, part(k, step, other_length), 0);
      post(&w->full[me], slices + k + 1);
    }
    if (k >= 1 && k - 1 < count) {  // my half: added, kept, and sent back
      const size_t q = k - 1;
      await(&w->full[1 - me], slices + q + 1);
      float* back = slot_of(w->halves[me], way, slices + q, &w->empty[1 - me]);
      add(out + mine + q * step, back, in + mine + q * step, slot_of(w->inputs[1 - me], way, slices + q, NULL),
          part(q, step, my_length), way->stream);
      post(&w->sums[me], slices + q + 1);
    }
    if (k >= 2) {  // the other's half as it comes back
      const size_t q = k - 2;
      await(&w->sums[1 - me], slices + q + 1);
      copy(out + other + q * step, slot_of(w->halves[1 - me], way, slices + q, NULL), part(q, step, other_length), way->stream);
      post(&w->empty[me], slices + q + 1);
    }
  }
  slices += count;
}

static void read_other(float* to, const float* from, size_t n) {
  struct iovec here = {to, n * sizeof(float)}, there = {(void*)from, n * sizeof(float)};
  if (n && process_vm_readv(w->pid[1 - me], &here, 1, &there, 1, 0) != (ssize_t)(n * sizeof(float))) w->wrong = 2;
}

static void pull(const struct way* way, float* out, const float* in, size_t n) {
  const size_t step = way->slot / sizeof(float), longer = end_of(1, n) - first_of(1, n), count = (longer + step - 1) / step;
  const size_t mine = first_of(me, n), my_length = end_of(me, n) - mine;
  const size_t other = first_of(1 - me, n), other_length = end_of(1 - me, n) - other;
  meet();
  for (size_t k = 0; k < count; k++) {
    const size_t at = mine + k * step, length = part(k, step, my_length);
    read_other(scratch, w->in[1 - me] + at, length);
    add(out + at, NULL, in + at, scratch, length, 0);
    post(&w->sums[me], slices + k + 1);
  }
  for (size_t k = 0; k < count; k++) {
    await(&w->sums[1 - me], slices + k + 1);
    read_other(out + other + k * step, w->out[1 - me] + other + k * step, part(k, step, other_length));
  }
  slices += count;
  meet();
}

static void whole(const struct way* way, float* out, const float* in, size_t n) {
  (void)in;
  meet();
  add(out, NULL, mapped_in[0], mapped_in[1], n, way->stream);
  meet();
}

static void halves(const struct way* way, float* out, const float* in, size_t n) {
  (void)in;
  const size_t at = first_of(me, n), length = end_of(me, n) - at;
  float* there = mapped_out[1 - me] + at;
  meet();
  out += at;
  size_t i = 0;
  if (way->stream)
    for (; i + kLanes <= length; i += kLanes) {
      const Vector sum = ADD(LOAD(mapped_in[0] + at + i), LOAD(mapped_in[1] + at + i));
      STREAM(out + i, sum);
      STREAM(there + i, sum);
    }
  add(out + i, there + i, mapped_in[0] + at + i, mapped_in[1] + at + i, length - i, 0);
  if (way->stream) _mm_sfence();
  meet();
}

#define ALL SIZE_MAX
static const struct way kWays[] = {
    {"publish", publish, 0, 0, kMostPublished, 0, 0},
    {"exchange8K", exchange, 0, 16 << 10, ALL, 8 << 10, 0},
    {"exchange32K", exchange, 0, 64 << 10, ALL, 32 << 10, 0},
    {"exchange128K-stream", exchange, 0, 1 << 20, ALL, 128 << 10, 1},
    {"pipeline16K", pipeline, 0, 4 << 10, ALL, 16 << 10, 0},
    {"pipeline64K", pipeline, 0, 64 << 10, ALL, 64 << 10, 0},
    {"pipeline64K-stream", pipeline, 0, 1 << 20, ALL, 64 << 10, 1},
    {"pipeline256K-stream", pipeline, 0, 1 << 20, ALL, 256 << 10, 1},
    {"pull", pull, 0, 4 << 10, ALL, 128 << 10, 0},
    {"whole", whole, 1, 0, 1 << 20, 0, 0},
    {"halves", halves, 1, 256, ALL, 0, 0},
    {"halves-stream", halves, 1, 1 << 20, ALL, 0, 1},
};

static void fill(float* array, size_t n, float value) {
  for (size_t i = 0; i < n; i++) array[i] = value;
}

// Mean seconds of so many calls, of the slower of both.
static double timed(const struct way* way, float* out, float* in, size_t n, long count, int fresh) {
  double spent = 0;
  meet();
  if (!fresh) spent = -seconds_now();
  for (long i = 0; i < count; i++) {
    if (fresh) {
      fill(in, n, (float)(me + 1));
      meet();
      spent -= seconds_now();
    }
    way->call(way, out, in, n);
    if (fresh) spent += seconds_now();
  }
  if (way->stream) _mm_sfence();
  if (!fresh) spent += seconds_now();
  w->seconds[me] = spent / (double)count;
  meet();
  return w->seconds[0] > w->seconds[1] ? w->seconds[0] : w->seconds[1];
}

static long fitting(double seconds, double each) {
  const double count = seconds / each;
  return count < 3 ? 3 : count > 1e6 ? 1000000 : (long)count;
}

static void run(const struct way* way, float* out, float* in, size_t n, double seconds, int fresh) {
  meet();
  // A way may leave counters behind that the next one does not raise.
  post(&w->full[me], 0), post(&w->sums[me], 0), post(&w->empty[me], 0);
  memset(w->published[0][me], 0, kLine), memset(w->published[1][me], 0, kLine);
  calls = slices = 0;
  fill(in, n, (float)(me + 1));
  fill(out, n, 0);
  timed(way, out, in, n, 2, 0);
  double each = timed(way, out, in, n, 3, fresh);
  each = timed(way, out, in, n, fitting(seconds / 4, each), fresh);
  each = timed(way, out, in, n, fitting(seconds, each), fresh);
  for (size_t i = 0; i < n; i++)
    if (out[i] != 3.F) w->wrong = 1;
  meet();
  if (me == 0 && !w->wrong) printf("%s %zu %.4f\n", way->name, n * sizeof(float), each * 1e6), fflush(stdout);
}

static void* shared_memory(size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) perror("limit: mmap"), exit(1);
  madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

static float* own_memory(size_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, (size_t)2 << 20, bytes)) fprintf(stderr, "limit: no memory\n"), exit(1);
  madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

// The core of this process: the first or the second that it may use.
static void bind_to_core(void) {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int skip = CPU_COUNT(&allowed) > 1 ? me : 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &allowed) && skip-- == 0) {
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
}

int main(int argc, char** argv) {
  const int fresh = argc == 7 && !strcmp(argv[6], "fresh");
  const int mapped = argc > 1 && !strcmp(argv[1], "mapped");
  if (argc < 6 || argc > 7 || (argc == 7 && !fresh) || (!mapped && strcmp(argv[1], "private") != 0)) {
    fprintf(stderr, "usage: limit private|mapped MIN_BYTES MAX_BYTES FACTOR SECONDS [fresh]\n");
    return 2;
  }
  const size_t low = strtoull(argv[2], NULL, 10), high = strtoull(argv[3], NULL, 10), factor = strtoull(argv[4], NULL, 10);
  const double seconds = atof(argv[5]);
  if (low < sizeof(float) || factor < 2 || !(seconds > 0)) {
    fprintf(stderr, "limit: sizes of at least 4 bytes, a factor of at least 2, seconds above 0\n");
    return 2;
  }
  w = shared_memory(sizeof *w);
  if (mapped)
    for (int p = 0; p < 2; p++) mapped_in[p] = shared_memory(high), mapped_out[p] = shared_memory(high);
  w->pid[0] = getpid();
  w->pid[1] = fork();
  if (w->pid[1] < 0) return perror("limit: fork"), 1;
  if (w->pid[1] == 0) {
    me = 1;
    w->pid[1] = getpid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // lets the other read this one's arrays
  bind_to_core();
  float* in = mapped ? (float*)mapped_in[me] : own_memory(high);
  float* out = mapped ? mapped_out[me] : own_memory(high);
  scratch = own_memory(kMostSlot);
  w->in[me] = in;
  w->out[me] = out;
  for (size_t bytes = low; bytes <= high; bytes *= factor)
    for (size_t i = 0; i < sizeof kWays / sizeof *kWays; i++) {
      const struct way* way = &kWays[i];
      if (way->mapped != mapped || bytes < way->from || bytes > way->to) continue;
      run(way, out, in, bytes / sizeof(float), seconds, fresh);
      if (me == 0 && w->wrong == 1) return fprintf(stderr, "limit: %s: wrong sum of %zu bytes\n", way->name, bytes), 1;
      if (me == 0 && w->wrong == 2) w->wrong = 0;  // this machine forbids it: no such row
    }
  if (me == 0) waitpid(w->pid[1], NULL, 0);
  return 0;
}
