// SPDX-License-Identifier: Apache-2.0
// A measured row and the lines that rank 0 prints: nccl-tests' columns, widths and comment lines, so that scripts written for it
// read ours. Pure functions from values to text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perf/options.h"

namespace shoal::perf {

// Times of single iterations, in microseconds (-I).
struct IterationStatistics {
  double min = 0, max = 0, average = 0, p50 = 0, p95 = 0, p99 = 0, deviation = 0;
  double variation = 0;  // deviation / average
  std::vector<double> times;
};
// `times` is not empty. Percentiles are nearest ranks.
IterationStatistics iteration_statistics(std::vector<double> times);

// What a compressed call did, means over ranks.
struct Compression {
  double ratio = 0;  // bytes of the tensor / bytes it was encoded to
  double error = 0;  // relative L2, of what a rank contributed
  double moved = 0;  // bytes received by a rank
  double encode_us = 0;
};

// One half of a row.
struct Measurement {
  double time_us = 0;            // a call, elapsed
  std::optional<double> cpu_us;  // -C: a call, of the calling thread; takes the time column
  double algorithm_gbs = 0;      // 1e9 bytes/s
  double bus_gbs = 0;
  std::optional<std::int64_t> wrong;  // nothing: not checked
  std::optional<IterationStatistics> iterations;
  std::optional<Compression> compression;  // with --compressor
};
// 1 GB = 1e9 bytes: bytes of the size column / time, and that times the collective's factor.
Measurement make_measurement(std::uint64_t bytes, double time_us, double bus_factor);

struct Row {
  std::uint64_t size = 0;   // bytes
  std::uint64_t count = 0;  // elements
  std::string type, reduction;
  int root = -1;
  std::optional<Measurement> out_of_place, in_place;  // nothing: does not exist for this collective
  std::string timestamp;                              // "" without -S
};

// One rank, as the list of devices shows it.
struct RankInfo {
  int rank = 0;
  int pid = 0;
  std::string host;
  int device = 0;             // position among the ranks of its process
  std::uint64_t machine = 0;  // equal numbers: one host
};

// A number in at most `width` characters: two decimals, or one or none where the width is short, else an exponent.
std::string number_text(double value, int width);

std::string heading(const Options& options, int library_version, const std::vector<RankInfo>& ranks);
std::string column_heading(const Options& options);
std::string row_text(const Row& row, const Options& options);

// The end of a run.
struct Verdict {
  std::int64_t wrong = 0;              // elements, all rows
  double average_bus_gbs = 0;          // plain mean over the halves of all rows
  std::optional<double> required_gbs;  // NCCL_TESTS_MIN_BW
  std::vector<std::string> errors;
  std::optional<double> memory_mib;  // -M: the largest peak of a process

  bool values_okay() const { return wrong == 0; }
  // 90 % of what is required is enough.
  bool bandwidth_okay() const { return !required_gbs || average_bus_gbs >= 0.9 * *required_gbs; }
  bool good() const { return values_okay() && bandwidth_okay() && errors.empty(); }
};
std::string footer(const Options& options, const Verdict& verdict);

}  // namespace shoal::perf
