// SPDX-License-Identifier: Apache-2.0
#include "compress/sparse/select.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

namespace shoal::compress::sparse {
namespace {

constexpr int kMostRounds = 10;
constexpr double kTooFew = 0.8;   // of k
constexpr float kLower = 0.8F;    // of the threshold
constexpr double kLeastHits = 4;  // of the k in a sample

}  // namespace

std::uint64_t kept(double density, std::uint64_t n) {
  const double exact = density * static_cast<double>(n);
  const double whole = std::round(exact);
  const double k = std::abs(exact - whole) <= 0x1p-50 * exact ? whole : std::ceil(exact);
  return k >= static_cast<double>(n) ? n : static_cast<std::uint64_t>(k);
}

Sample sample_of(std::uint64_t n, std::uint64_t k, double fraction, std::uint64_t seed) {
  if (k == 0 || n == 0) return {};
  const double length = static_cast<double>(n);
  const double wanted = std::max(fraction * length, kLeastHits * length / static_cast<double>(k));
  const auto rough = static_cast<std::uint64_t>(std::max(1.0, length / wanted));
  const std::uint64_t stride = rough < 32 ? (rough - 1) / 2 * 2 + 1 : (rough - 1) / 32 * 32 + 1;
  return {.start = mixed(seed) % stride, .stride = stride};
}

// The threshold that lets some more than k through: those of the sample that are above it are two standard deviations more than
// expected, so that a second pass is rare; what is too much is cheaper, being put in order after the pass.
std::uint32_t Selector::estimate(const Accumulation& step, std::size_t n, std::size_t k, double sample, std::uint64_t seed) {
  const Sample places = sample_of(n, k, sample, seed);
  if (places.stride == 1) return 0;
  magnitudes_.clear();
  magnitudes_.reserve(n / places.stride + 1);
  for (std::size_t i = places.start; i < n; i += places.stride) {
    float velocity = 0;
    magnitudes_.push_back(magnitude(accumulated(step, i, velocity)));
  }
  const double hits = static_cast<double>(k) * static_cast<double>(magnitudes_.size()) / static_cast<double>(n);
  const auto rank = static_cast<std::size_t>(std::ceil(hits + 2 * std::sqrt(hits)));
  if (rank >= magnitudes_.size()) return 0;
  const auto at = magnitudes_.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(magnitudes_.begin(), at, magnitudes_.end(), std::greater<>());
  return *at;
}

// Leaves the k largest, in the order of their indices; of equal ones those that come first. The magnitude from which on another
// one would be among them.
std::uint32_t Selector::keep_largest(std::size_t k) {
  if (taken_ < k) return 0;
  if (k == 0) {
    taken_ = 0;
    return kTakeNone;
  }
  magnitudes_.resize(taken_);
  std::transform(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(taken_), magnitudes_.begin(), magnitude);
  const auto last = magnitudes_.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(magnitudes_.begin(), last, magnitudes_.end(), std::greater<>());
  const std::uint32_t least = *last;
  auto equal = static_cast<std::size_t>(std::count(magnitudes_.begin(), last, least)) + 1;  // of the k
  std::size_t to = 0;
  for (std::size_t i = 0; i < taken_; ++i) {
    const std::uint32_t size = magnitude(values_[i]);
    if (size < least || (size == least && equal == 0)) continue;
    equal -= size == least ? 1 : 0;
    indices_[to] = indices_[i];
    values_[to++] = values_[i];
  }
  taken_ = to;
  return least + 1;
}

void Selector::pass(const Accumulation& step, std::size_t n, std::size_t k, std::uint32_t threshold) {
  taken_ = 0;
  largest_ = 0;
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t end = std::min(n, begin + kBlock);
    if (taken_ + (end - begin) > room_) threshold = std::max(threshold, keep_largest(k));
    taken_ += accumulate(step, begin, end, threshold, indices_.data() + taken_, values_.data() + taken_, largest_);
  }
}

void Selector::select(const Accumulation& step, std::size_t n, std::size_t k, double sample, std::uint64_t seed) {
  k = std::min(k, n);
  rounds_ = 0;
  room_ = std::min(n, k + k / 2 + 2 * kBlock);
  if (indices_.size() < room_ + kSlack) {
    indices_.resize(room_ + kSlack);
    values_.resize(room_ + kSlack);
    magnitudes_.reserve(room_);
  }
  std::uint32_t threshold = k == 0 ? kTakeNone : estimate(step, n, k, sample, seed);
  pass(step, n, k, threshold);
  const Accumulation made = step.residual == nullptr ? step : Accumulation{.input = step.next_residual};
  while (finite() && static_cast<double>(taken_) < kTooFew * static_cast<double>(k) && rounds_ < kMostRounds) {
    ++rounds_;
    threshold = magnitude(std::bit_cast<float>(threshold) * kLower);
    pass(made, n, k, threshold);
  }
  keep_largest(k);
}

}  // namespace shoal::compress::sparse
