// SPDX-License-Identifier: Apache-2.0
// Inputs of compressors' tests, and sums of them in float64.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "compress/lockstep.h"

namespace testing {

using Vectors = std::vector<std::vector<float>>;  // [rank]
using Wide = std::vector<double>;

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Normal, mean 0, variance 1.
inline std::vector<float> random_vector(std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> vector(n);
  for (float& x : vector) x = normal(engine);
  return vector;
}

inline Vectors random_vectors(int world, std::size_t n, unsigned seed) {
  Vectors vectors;
  for (int r = 0; r < world; ++r) vectors.push_back(random_vector(n, 1000 * seed + static_cast<unsigned>(r)));
  return vectors;
}

inline Wide wide(const std::vector<float>& v) { return {v.begin(), v.end()}; }

inline Wide sum_of(const Vectors& vectors, double scale = 1) {
  Wide sum(vectors.front().size());
  for (const auto& each : vectors)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += scale * static_cast<double>(each[i]);
  return sum;
}

inline void add(Wide& sum, const std::vector<float>& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(more[i]);
}

inline double norm(const Wide& v) { return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0)); }

// |v - goal| / |goal|
inline double off(Wide v, const Wide& goal) {
  for (std::size_t i = 0; i < v.size(); ++i) v[i] -= goal[i];
  return norm(v) / norm(goal);
}

inline void require_alike(const Outcome& outcome) {
  REQUIRE(outcome.wrong == "");
  for (std::size_t r = 1; r < outcome.outputs.size(); ++r) {
    const bool alike = outcome.outputs[r] == outcome.outputs[0];  // not the vectors: they may be long
    CAPTURE(r);
    REQUIRE(alike);
  }
}

inline std::vector<std::byte> saved(const shoal::compress::Compressor& compressor) {
  shoal::compress::StateWriter writer;
  compressor.save(writer);
  return writer.bytes();
}

inline shoal::Status loaded(shoal::compress::Compressor& compressor, const std::vector<std::byte>& bytes) {
  shoal::compress::StateReader reader(bytes);
  shoal::Status status = compressor.load(reader);
  if (status.is_ok()) REQUIRE(reader.at_end());
  return status;
}

// A world of one; input and output are the same memory.
inline std::vector<float> alone_in_place(shoal::compress::Compressor& compressor, std::vector<float> memory) {
  shoal::compress::Stages stages = compressor.all_reduce({memory.data(), memory.data(), memory.size()}, {{1}, {0}, {}});
  for (auto next = stages.next(); next->has_value(); next = stages.next()) run_alone(**next);
  return memory;
}

}  // namespace testing
