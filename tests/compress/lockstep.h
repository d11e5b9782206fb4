// SPDX-License-Identifier: Apache-2.0
// Compressors of all ranks of a world run side by side in one thread, with collectives that are plain loops: what a compressor
// computes, without a communicator. Checks on the way that all ranks ask for the same collective.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compress/compressor.h"

namespace testing {

struct Outcome {
  std::string wrong;                        // not empty: a call failed, or the ranks did not ask for the same
  std::vector<std::vector<float>> outputs;  // [rank]
  // What rank r must send and receive in the collectives, without what it sends to itself; an all-reduce counts as
  // 2 (p - 1) / p of its bytes both ways.
  std::vector<double> sent, received;  // [rank] bytes
  int collectives = 0;
};

using Ranks = std::vector<std::unique_ptr<shoal::compress::Compressor>>;  // [rank]

// One compressor a rank. Fails the test if there is none of this name, or the options are wrong.
Ranks make_ranks(std::string_view kind, std::string_view options, shoal::compress::Shape shape, int world);

// One compressed all-reduce. inputs[rank], all of the same length.
Outcome all_reduce(const Ranks& ranks, const std::vector<std::vector<float>>& inputs, bool average = false, bool measure = true);

// A collective of a world of one.
void run_alone(const shoal::engine::Call& call);

}  // namespace testing
