// SPDX-License-Identifier: Apache-2.0
// What the sweep must know of a collective. To add one: a file with such a struct, and a line in collectives.cpp.
#pragma once

#include <nccl.h>
#include <shoal/compress.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "perf/pattern.h"

namespace shoal::perf {

// How many elements a call of `bytes` handles, in nccl-tests' definitions.
struct Extent {
  std::size_t count = 0;    // the argument of the call, and the count column
  std::size_t send = 0;     // elements of a rank's input
  std::size_t receive = 0;  // elements of a rank's output
  std::size_t total = 0;    // elements of the size column
};

// Where the input and output of `rank` lie when both are in one buffer: element offsets into it.
struct InPlace {
  std::size_t send = 0;
  std::size_t receive = 0;
};

// The arguments of one call.
struct Call {
  const void* send;
  void* receive;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
  ncclComm_t comm;
  cudaStream_t stream;
  // With --compressor.
  shoalCompressor_t compressor = nullptr;
  std::size_t rows = 1;
  shoalCompressionReport* report = nullptr;
};

// A rank's view of the data of a call.
struct Place {
  int rank;
  int world;
  int root;
};

struct Collective {
  const char* name;     // all_reduce; the program is also called by it: all_reduce_perf
  const char* call;     // ncclAllReduce, for messages
  bool reduces;         // takes -o; else the redop column reads "none"
  bool rooted;          // takes -r; else the root column reads -1
  bool works_in_place;  // else the in-place columns read N/A

  Extent (*extent)(std::size_t bytes, std::size_t element_bytes, int world);
  InPlace (*in_place)(const Extent& extent, const Place& place);
  double (*bus_factor)(int world);  // busbw / algbw

  void (*prepare)(Pattern& pattern, const Place& place, std::span<std::byte> send);
  ncclResult_t (*launch)(const Call& call);
  // Elements of the output that are wrong.
  std::int64_t (*check)(Pattern& pattern, const Place& place, std::span<const std::byte> receive);
};

// All of them, and the one of this name ("all_reduce"), or null.
std::span<const Collective* const> collectives();
const Collective* find_collective(std::string_view name);

}  // namespace shoal::perf
