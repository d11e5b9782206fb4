// SPDX-License-Identifier: Apache-2.0
// What a run was and how it went, as data, and its two readers: text for people, JSON for programs. Values; one thread.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "train/parallel/buckets.h"
#include "train/parallel/comm_times.h"
#include "train/parallel/compression.h"
#include "train/trainer.h"

namespace shoal::train {

struct EpochRecord {
  std::size_t epoch = 0;     // from 1
  double loss = 0;           // mean over the epoch's samples, before each update
  double accuracy = 0;       // of the same, %
  double test_accuracy = 0;  // after the epoch, %
  double seconds = 0;        // training and test
  double samples_per_s = 0;  // training, all ranks
};

// Rank 0's time in training steps; compute + exposed = step, hidden lies under compute. The first step, in which links are made
// and memory is touched for the first time, counts only where there is no other.
struct TimeRecord {
  std::size_t steps = 0;
  double step_ms = 0;  // sums over the timed steps
  double busy_ms = 0;
  double exposed_ms = 0;
  double late_ms = 0;  // of exposed_ms: waiting for a rank that was late; known at the end

  void add(double step, const CommTimes& communication) {
    if (++steps == 2) step_ms = busy_ms = exposed_ms = 0;
    step_ms += step;
    busy_ms += communication.busy_ms;
    exposed_ms += communication.exposed_ms;
  }
  std::size_t timed_steps() const { return steps > 1 ? steps - 1 : 1; }

  double compute_ms() const { return step_ms - exposed_ms; }
  double hidden_ms() const { return busy_ms > exposed_ms ? busy_ms - exposed_ms : 0.0; }
};

inline constexpr double kTolerance = 1e-5;  // relative L2 difference of a tensor between the parallel run and the run alone

struct CheckRecord {
  bool same_bits = false;  // all ranks hold the same parameters, bit for bit
  double difference = 0;   // of the worst tensor
  std::string worst;

  bool passed() const { return same_bits && difference <= kTolerance; }
};

struct RunRecord {
  Recipe recipe;
  std::size_t world = 1;
  std::size_t samples = 0;
  std::size_t parameters = 0;
  std::size_t tensors = 0;
  std::vector<Bucket> buckets;
  std::vector<EpochRecord> epochs;
  TimeRecord time;
  std::optional<double> target_accuracy;
  std::optional<CheckRecord> check;
  std::optional<CompressionRecord> compression;

  bool reached_target() const;
};

void print_header(const RunRecord& run);
void print_progress(const RunRecord& run, std::size_t epoch, std::size_t step, const Score& score, double samples_per_s);
void print_epoch(const EpochRecord& epoch);
void print_summary(const RunRecord& run);
void print_check(const CheckRecord& check);

// Opened before the run and written after it, so that a wrong path costs no training. Both throw Error (Exit::usage).
std::ofstream open_json(const std::string& path);
void write_json(const RunRecord& run, std::ofstream file, const std::string& path);

}  // namespace shoal::train
