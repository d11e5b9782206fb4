// SPDX-License-Identifier: Apache-2.0
// 1-bit SGD: a sign an element, two means a column, and what that loses goes into the next call. Seide et al., "1-Bit Stochastic
// Gradient Descent and its Application to Data-Parallel Distributed Training of Speech DNNs", Interspeech 2014.
//
//   v_k    = s G_k + e_k
//   q_k    = per column: mean of v_k >= 0 where v_k >= 0, else mean of v_k < 0       whole columns to their owner
//   w      = sum_k q_k (in the order of ranks) + f                                   f: the owner's error of the last sum
//   result = w quantised the same way                                                to all
//   e_k    = v_k - q_k,  f = w - result
//
// So results, residuals of all ranks and of all owners add up to what went in. A column that is not finite has NaN for its result
// on all ranks, and its residuals stay as they were.
//
// A column is one of the matrix; vectors, and matrices with few rows (two means would weigh more than their bits), are cut into
// columns of contiguous elements.
#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "compress/calls.h"
#include "compress/compressor.h"
#include "compress/errors.h"
#include "compress/one_bit/one_bit.h"

namespace shoal::compress {
namespace {

using one_bit::Columns;

constexpr std::size_t kStep = 128;     // [elements] of a vector's columns
constexpr std::size_t kFewRows = 128;  // a matrix with fewer is cut like a vector

constexpr std::array kOptions = {
    OptionSpec{.name = "column",
               .about = "elements of a vector that share two means, rounded up to a multiple of 128",
               .value = 512,
               .low = kStep,
               .high = 1 << 20,
               .whole = true},
    OptionSpec{.name = "feedback", .about = "0: forgets both roundings' errors", .value = 1, .high = 1, .whole = true}};

class OneBit final : public Compressor {
 public:
  OneBit(const Options& options, Shape shape)
      : shape_(shape),
        by_matrix_(shape.is_matrix() && shape.rows >= kFewRows),
        column_((options.whole("column") + kStep - 1) / kStep * kStep),
        feeds_back_(options.flag("feedback")) {
    if (feeds_back_) residual_.resize(shape.elements);
  }

  Stages all_reduce(Tensor tensor, Place place) override;

  void save(StateWriter& out) const override {
    out.floats(residual_);
    out.number(sum_first_);
    out.number(sum_residual_.size());
    out.floats(sum_residual_);
  }
  Status load(StateReader& in) override {
    std::vector<float> residual(residual_.size());
    in.floats(residual);
    const std::uint64_t first = in.number(), length = in.number();
    if (!in.ok() || length > residual.size()) return refused();
    std::vector<float> sum_residual(length);
    if (!in.floats(sum_residual)) return refused();
    residual_.swap(residual);
    sum_first_ = first;
    sum_residual_.swap(sum_residual);
    return {};
  }

 private:
  struct Stripe {
    Columns columns;    // in the tensor
    std::size_t first;  // element
  };
  Stripe stripe(World world, std::size_t q) const;
  Status refused() const {
    return fail(Code::invalid_argument, "the state is not one of {} elements with this feedback", shape_.elements);
  }
  const float* residual(std::size_t first) const { return feeds_back_ ? residual_.data() + first : nullptr; }
  void measure(const Tensor& tensor, const Stripe& part, const std::byte* wire);
  void sum_up(const Columns& own, std::size_t first, World world);

  const Shape shape_;
  const bool by_matrix_;
  const std::size_t column_;
  const bool feeds_back_;
  std::vector<float> residual_;      // of this rank's contributions
  std::vector<float> sum_residual_;  // of the sums that this rank owns ...
  std::uint64_t sum_first_ = 0;      // ... which begin with this element

  BlockLengths lengths_;
  std::vector<std::byte> encoded_;       // all stripes of one rank
  std::vector<std::byte> arrived_;       // this rank's stripe of all ranks
  std::vector<std::byte> own_;           // its sum, encoded
  std::vector<std::byte> all_;           // all sums
  std::vector<float> sum_;               // this rank's stripe
  std::vector<float> meant_row_, sent_;  // to measure: a row; a stripe
};

OneBit::Stripe OneBit::stripe(World world, std::size_t q) const {
  const auto cut = [&](std::size_t columns) { return plan::chunk_range({columns}, world.value, static_cast<std::int32_t>(q)); };
  if (by_matrix_) {
    const auto [begin, end] = cut(shape_.columns());
    return {Columns::of_matrix(shape_.rows, end - begin, shape_.columns()), begin};
  }
  const auto [begin, end] = cut((shape_.elements + column_ - 1) / column_);
  const std::size_t first = std::min(shape_.elements, begin * column_);
  return {Columns::of_vector(std::min(shape_.elements, end * column_) - first, column_), first};
}

// The same columns without what is between them.
Columns packed(Columns columns) {
  columns.stride = columns.width;
  return columns;
}

void OneBit::measure(const Tensor& tensor, const Stripe& part, const std::byte* wire) {
  const Columns& columns = part.columns;
  sent_.resize(columns.elements());
  meant_row_.resize(columns.width);
  one_bit::decode(packed(columns), wire, sent_.data());
  for (std::size_t row = 0; row < columns.rows; ++row) {
    for (std::size_t k = 0; k < columns.width; ++k) {
      const std::size_t at = part.first + row * columns.stride + k;
      meant_row_[k] = tensor.scale * tensor.input[at] + (feeds_back_ ? residual_[at] : 0.0F);
    }
    add_error(meant_row_, {sent_.data() + row * columns.width, columns.width}, report_);
  }
}

void OneBit::sum_up(const Columns& own, std::size_t first, World world) {
  sum_.resize(own.elements());
  one_bit::decode(own, arrived_.data(), sum_.data());
  for (std::size_t q = 1; q < static_cast<std::size_t>(world.value); ++q)
    one_bit::decode_add(own, arrived_.data() + lengths_.received_at(q), sum_.data());
  if (feeds_back_ && (sum_residual_.size() != sum_.size() || sum_first_ != first)) {
    sum_residual_.assign(sum_.size(), 0);  // other columns than the last call's
    sum_first_ = first;
  }
  own_.resize(own.wire_bytes());
  one_bit::encode(own, {sum_.data(), 1, feeds_back_ ? sum_residual_.data() : nullptr}, own_.data());
}

Stages OneBit::all_reduce(Tensor tensor, Place place) {
  const auto start = std::chrono::steady_clock::now();
  const auto ranks = static_cast<std::size_t>(place.world.value), self = static_cast<std::size_t>(place.rank.value);
  const Columns own = packed(stripe(place.world, self).columns);
  report_ = {};

  lengths_.renew(place.world);
  std::size_t bytes = 0;
  for (std::size_t q = 0; q < ranks; ++q) {
    lengths_.sent()[q] = stripe(place.world, q).columns.wire_bytes();
    lengths_.received()[q] = own.wire_bytes();
    bytes += lengths_.sent()[q];
  }
  encoded_.resize(bytes);
  arrived_.resize(ranks * own.wire_bytes());
  all_.resize(bytes);
  const engine::Call exchange = lengths_.all_to_all(encoded_.data(), arrived_.data());
  for (std::size_t q = 0; q < ranks; ++q) {
    const Stripe part = stripe(place.world, q);
    one_bit::encode(part.columns, {tensor.input + part.first, tensor.scale, residual(part.first)},
                    encoded_.data() + lengths_.sent_at(q));
  }
  report_.encoded_bytes = bytes;
  report_.encode_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  co_yield exchange;

  sum_up(own, stripe(place.world, self).first, place.world);
  lengths_.renew(place.world);
  for (std::size_t q = 0; q < ranks; ++q) lengths_.received()[q] = stripe(place.world, q).columns.wire_bytes();
  co_yield lengths_.all_gather(own_.data(), all_.data());

  // Stripes lie alike in what this rank has sent and in what has come.
  for (std::size_t q = 0; q < ranks; ++q) {
    const Stripe part = stripe(place.world, q);
    const std::byte* sent = encoded_.data() + lengths_.received_at(q);
    if (tensor.measure) measure(tensor, part, sent);
    if (feeds_back_) one_bit::keep(part.columns, tensor.input + part.first, tensor.scale, sent, residual_.data() + part.first);
    one_bit::decode(part.columns, all_.data() + lengths_.received_at(q), tensor.output + part.first);
  }
  if (feeds_back_) one_bit::keep(own, sum_.data(), 1, own_.data(), sum_residual_.data());
  co_return Status();
}

}  // namespace

extern const Kind onebit_kind;
const Kind onebit_kind{.name = "onebit",
                       .about = "1-bit SGD: a sign an element and two means a column, both ways",
                       .options = kOptions,
                       .make = make_compressor<OneBit>};

}  // namespace shoal::compress
