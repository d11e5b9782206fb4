// SPDX-License-Identifier: Apache-2.0
#include "compress/sparse/sum.h"

#include <algorithm>
#include <utility>

#include "compress/sparse/kernels.h"

namespace shoal::compress::sparse {

void Sum::assign(EntriesView entries, std::uint64_t base, std::uint64_t n, ValueType type) {
  n_ = n;
  type_ = type;
  dense_ = false;
  list_.assign(entries);
  if (base != 0)
    for (std::uint32_t& index : list_.indices) index -= static_cast<std::uint32_t>(base);
  if (list_.size() > most_entries(n_)) make_dense();
}

// Never holds -0: what is alone at its place is added to +0 here, as it is in a vector on the other side.
void Sum::make_dense() {
  dense_ = true;
  vector_.resize(n_);
  fill_zero(vector_.data(), vector_.size());
  for (std::size_t i = 0; i < list_.size(); ++i) vector_[list_.indices[i]] += list_.values[i];
  list_.clear();
}

// merged_ = list_ + other_.
void Sum::merge() {
  merged_.clear();
  std::size_t i = 0, j = 0;
  while (i < list_.size() && j < other_.size()) {
    const std::uint32_t a = list_.indices[i], b = other_.indices[j];
    if (a < b) {
      merged_.push(a, list_.values[i++]);
    } else if (b < a) {
      merged_.push(b, other_.values[j++]);
    } else {
      merged_.push(a, list_.values[i++] + other_.values[j++]);
    }
  }
  for (; i < list_.size(); ++i) merged_.push(list_.indices[i], list_.values[i]);
  for (; j < other_.size(); ++j) merged_.push(other_.indices[j], other_.values[j]);
}

Status Sum::add(std::span<const std::byte> wire) {
  type_ = ValueType::fp32;
  if (!dense_ && is_dense(wire)) make_dense();
  if (dense_) return decode_add(wire, n_, vector_.data());
  other_.clear();
  if (Status status = decode(wire, n_, other_); !status.is_ok()) return status;
  merge();
  std::swap(list_, merged_);
  if (list_.size() > most_entries(n_)) make_dense();
  return {};
}

std::uint64_t Sum::wire_bytes() {
  if (dense_) return sparse::wire_bytes(Format::dense, n_, 0, n_, type_);
  layout_ = layout_of(list_.view(), 0, n_, type_);
  return layout_.bytes;
}

void Sum::encode(std::byte* wire) {
  if (dense_)
    encode_dense({vector_.data(), vector_.size()}, type_, wire);
  else
    sparse::encode(list_.view(), 0, n_, type_, layout_, wire);
}

void Sum::write(float* out) const {
  if (dense_) {
    std::copy(vector_.begin(), vector_.end(), out);
    return;
  }
  fill_zero(out, n_);
  for (std::size_t i = 0; i < list_.size(); ++i) out[list_.indices[i]] += list_.values[i];
}

}  // namespace shoal::compress::sparse
