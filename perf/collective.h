// SPDX-License-Identifier: Apache-2.0
// What the sweep must know of a collective. To add one: a file in collectives/ with such a struct, and a line each in
// collectives/collectives.h and table.cpp.
#pragma once

#include <nccl.h>
#include <shoal/compress.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "perf/pattern.h"
#include "perf/traffic.h"

namespace shoal::perf {

// A rank's view of a call.
struct Place {
  int rank = 0;
  int world = 1;
  int root = -1;                     // -1 if the collective has none
  const Traffic* traffic = nullptr;  // of all-to-all-v; null: all blocks as long as each other
};

// How many elements a call of `bytes` handles on one rank, in nccl-tests' definitions. count, total and moved are the same on all
// ranks.
struct Extent {
  std::size_t count = 0;    // the argument of the call, and the count column
  std::size_t send = 0;     // elements of this rank's input
  std::size_t receive = 0;  // elements of this rank's output
  std::size_t total = 0;    // elements of the size column
  std::size_t moved = 0;    // elements that algbw counts
};

// Where the input and output of a rank lie when both are in one buffer: element offsets into it.
struct InPlace {
  std::size_t send = 0;
  std::size_t receive = 0;
};

// Of blocks to and from each rank, which follow each other: lengths in elements.
struct Blocks {
  std::vector<std::size_t> send, receive;
  std::vector<std::size_t> origin;  // the element of each rank's input at which the block for this one begins
};

// The arguments of one call.
struct Call {
  const void* send;
  void* receive;
  std::size_t count;
  ncclDataType_t type;
  std::size_t element_bytes;
  ncclRedOp_t op;
  Place place;
  Blocks blocks;  // of all-to-all-v
  ncclComm_t comm;
  cudaStream_t stream;
  // With --compressor.
  shoalCompressor_t compressor = nullptr;
  std::size_t rows = 1;
  shoalCompressionReport* report = nullptr;
};

struct Collective {
  const char* name;     // all_reduce; the program is also called by it: all_reduce_perf
  const char* call;     // ncclAllReduce, for messages
  bool reduces;         // takes -o; else the redop column reads "none"
  bool rooted;          // takes -r; else the root column reads -1
  bool works_in_place;  // else the in-place columns read N/A
  bool power_of_two;    // of ranks is needed

  Extent (*extent)(std::size_t bytes, std::size_t element_bytes, const Place& place);
  InPlace (*in_place)(const Extent& extent, const Place& place);
  Blocks (*blocks)(std::size_t bytes, std::size_t element_bytes, const Place& place);  // null: the call takes no lengths
  double (*bus_factor)(int world);                                                     // busbw / algbw
  int (*rounds)(int world);  // calls that follow each other, each needing what the one before brought

  // Writes this rank's input.
  void (*prepare)(Pattern& pattern, const Place& place, std::span<std::byte> send);
  ncclResult_t (*launch)(const Call& call, int round);
  // Elements of this rank's output that are wrong.
  std::int64_t (*check)(Pattern& pattern, const Place& place, const Blocks& blocks, std::span<const std::byte> receive);
};

// All of them, and the one of this name ("all_reduce"), or null.
std::span<const Collective* const> collectives();
const Collective* find_collective(std::string_view name);

}  // namespace shoal::perf
