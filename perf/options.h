// SPDX-License-Identifier: Apache-2.0
// shoal-perf's command line as a value: nccl-tests' options, with refusals that are one line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perf/buffer.h"
#include "perf/collective.h"
#include "perf/element.h"
#include "perf/pattern.h"
#include "tools/cli/command_line.h"

namespace shoal::perf {

// Exit codes, nccl-tests' ones, and one that they have no word for.
constexpr int kOk = 0, kInternalError = 1, kSlowerThanBaseline = 1, kCollectiveFailed = 3, kTimedOut = 4, kNotImplemented = 5,
              kInvalidUsage = 6, kWrongResults = 7, kRefusedOption = 255;

enum class Average { rank_0, mean, min, max };  // over the ranks' times, in the order of -a

enum class Task {
  measure,
  calibrate,  // --calibrate
  plot,       // --plot of earlier runs alone
};

constexpr std::uint64_t kDefaultBytes = 32 << 20;
constexpr int kMaxRanksPerProcess = 256;

struct Options {
  Task task = Task::measure;
  const Collective* collective = nullptr;  // null for the other tasks
  int threads = 1;
  int ranks_per_thread = 1;
  std::uint64_t min_bytes = kDefaultBytes;
  std::uint64_t max_bytes = kDefaultBytes;
  std::uint64_t step_bytes = 1 << 20;
  int step_factor = 0;  // 0: sizes grow by step_bytes
  int iterations = 20;
  int warmup = 1;
  int aggregate = 1;  // calls per group
  int cycles = 1;     // sweeps; 0: for ever
  bool parallel_init = false;
  int checks = 1;
  std::vector<const ReductionInfo*> reductions;
  std::vector<const ElementType*> types;
  std::string compressor;          // its name; empty: none
  std::string compressor_options;  // "key=value,..."
  int root = 0;                    // -1: each in turn
  int blocking = 0;                // 0: calls back to back, 1: wait after each, 2 and 3: wait and meet after each
  bool null_stream = false;        // -y 1; on host memory the default as well
  bool host_stream = false;        // --stream: a stream a rank
  double timeout_s = 0;            // 0: the library's
  bool cpu_time = false;
  bool timestamps = false;
  std::string json_path;  // empty: none
  Average average = Average::mean;
  bool memory = false;
  int unalign = 0;  // elements by which buffers are moved off their alignment
  bool per_iteration = false;
  int per_iteration_skip = 0;
  Memory buffers = Memory::own;        // --mem, -R
  bool fresh = false;                  // inputs are rewritten before each timed call
  Traffic traffic;                     // of all-to-all-v; from the environment
  std::string plot_path;               // SVG; empty: none
  std::vector<std::string> plot_with;  // JSON files of earlier runs
  std::string baseline_path;           // JSON of an earlier run; empty: none
  double tolerance = 1.25;             // times the baseline's time that still pass
  std::string calibration_path;        // empty: none
};

// Fills `options` from the arguments after the program's name. `program` is the base name the process was called by:
// all_reduce_perf takes no COLLECTIVE.
cli::Outcome parse_options(const std::string& program, const std::vector<std::string>& arguments, Options& options);

// The size after `size` in the sweep, which starts at min_bytes; nothing after the last.
std::optional<std::uint64_t> next_size(const Options& options, std::uint64_t size);

// What cannot work here, or "": `ranks_here` ranks of this host share `available` bytes of memory.
std::string check_against_machine(const Options& options, int world, int ranks_here, std::uint64_t available);

// A word of --mem.
const char* name_of(Memory memory);

// Memory that can be had without swapping, within the control group's limit, in bytes; the largest value if unknown.
std::uint64_t available_memory();

}  // namespace shoal::perf
