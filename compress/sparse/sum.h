// SPDX-License-Identifier: Apache-2.0
// The sum of some ranks' sparse vectors: a list of entries while that is the shorter representation, from then on the vector
// itself (SparCML; Renggli et al., SC 2019). One thread at a time.
//
// Additions are the same bits on both sides of an exchange: x.add(y's message) leaves what y.add(x's message) leaves, in the same
// representation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compress/sparse/entries.h"
#include "compress/sparse/indices.h"
#include "core/status.h"

namespace shoal::compress::sparse {

class Sum {
 public:
  // The longest list: n v / (v + i), with values of v = 4 and indices of i = 4 bytes.
  static constexpr std::uint64_t most_entries(std::uint64_t n) { return n * 4 / (4 + 4); }

  // Entries with indices within [base, base + n), as those of a vector of n elements; their values are of the type.
  void assign(EntriesView entries, std::uint64_t base, std::uint64_t n, ValueType type);
  void clear(std::uint64_t n) { assign({}, 0, n, ValueType::fp32); }
  // Errors: invalid_usage, as decode says; the sum is then worth nothing.
  Status add(std::span<const std::byte> wire);

  bool dense() const { return dense_; }
  std::uint64_t wire_bytes();  // of encode
  void encode(std::byte* wire);
  // All n elements: what is in no entry is 0.
  void write(float* out) const;

 private:
  void merge();
  void make_dense();

  std::uint64_t n_ = 0;
  bool dense_ = false;
  ValueType type_ = ValueType::fp32;  // that all values have: sums of several are fp32
  Layout layout_;                     // of the list
  Entries list_, other_, merged_;
  std::vector<float> vector_;
};

}  // namespace shoal::compress::sparse
