// SPDX-License-Identifier: Apache-2.0
// The k elements of largest magnitude, found in the pass that makes them: a threshold from a sample of what the elements will be,
// then one pass that accumulates and takes what is above it. Whatever the threshold, never more than k come out; those are the
// largest of all that were above it, the lower index first among equals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compress/sparse/entries.h"
#include "compress/sparse/kernels.h"

namespace shoal::compress::sparse {

// ceil(density * n), at most n; a product that is whole but for float64's rounding is whole. density: within [0, 1].
std::uint64_t kept(double density, std::uint64_t n);

// Every stride-th element from `start` on.
struct Sample {
  std::uint64_t start = 0;
  std::uint64_t stride = 1;
  std::uint64_t size(std::uint64_t n) const { return start >= n ? 0 : (n - start - 1) / stride + 1; }
};
// Some `fraction` of n elements, but so many that 4 of the k can be expected among them. Strides are odd, long ones 32 j + 1, so
// that a sample does not follow the columns of a matrix. The start depends on the seed.
Sample sample_of(std::uint64_t n, std::uint64_t k, double fraction, std::uint64_t seed);

// One thread at a time; allocates only for a k or n larger than all before.
class Selector {
 public:
  // Makes the step of n elements and selects min(k, n) of its v'. Fewer only if the sample's threshold was too high by far: while
  // it lets through less than 0.8 k it is lowered by a fifth, ten times at most.
  void select(const Accumulation& step, std::size_t n, std::size_t k, double sample, std::uint64_t seed);

  // All v' of the step were. If not, what is selected means nothing.
  bool finite() const { return largest_ < kInfinite; }
  EntriesView selected() const { return {{indices_.data(), taken_}, {values_.data(), taken_}}; }
  // The values, to be rounded.
  std::span<float> values() { return {values_.data(), taken_}; }
  int rounds() const { return rounds_; }  // passes after the first one

 private:
  std::uint32_t estimate(const Accumulation& step, std::size_t n, std::size_t k, double sample, std::uint64_t seed);
  void pass(const Accumulation& step, std::size_t n, std::size_t k, std::uint32_t threshold);
  std::uint32_t keep_largest(std::size_t k);

  std::vector<std::uint32_t> indices_;  // those taken so far, and room for a block
  std::vector<float> values_;
  std::vector<std::uint32_t> magnitudes_;  // to be put in order
  std::size_t taken_ = 0;
  std::size_t room_ = 0;  // entries
  std::uint32_t largest_ = 0;
  int rounds_ = 0;
};

}  // namespace shoal::compress::sparse
