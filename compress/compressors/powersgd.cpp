// SPDX-License-Identifier: Apache-2.0
// PowerSGD: the sum of matrices as a product of two thin factors, by one step of a power iteration that starts where the last
// call's ended. Vogels, Karimireddy, Jaggi, "PowerSGD", NeurIPS 2019.
//
//   M_k  = s G_k + E_k                      rank k's gradient (rows x columns) and what it has not sent yet
//   P    = sum_k M_k Q                      all-reduce of rank * rows floats; then orthonormal columns
//   Q_k  = M_k^T P,  Q = sum_k Q_k          all-reduce of rank * columns floats; the next call starts from this Q
//   result = P Q^T                          on every rank
//   E_k  = M_k - P Q_k^T
//
// The paper's E_k is M_k minus the mean of what all have sent. Here a rank subtracts its own projection, of which the result is
// the sum: sum_k E_k + result = sum_k M_k, so that nothing is lost, for a sum as for a mean (s = 1 / world), and a rank's error
// holds no other rank's data.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <vector>

#include "compress/calls.h"
#include "compress/compressor.h"
#include "compress/errors.h"
#include "compress/low_rank/low_rank.h"
#include "engine/mix.h"

namespace shoal::compress {
namespace {

constexpr std::array kOptions = {
    OptionSpec{.name = "rank", .about = "columns of each factor", .value = 2, .low = 1, .high = 1024, .whole = true},
    OptionSpec{.name = "start", .about = "calls that go uncompressed at first", .high = 1e9, .whole = true},
    OptionSpec{
        .name = "min_rate", .about = "how many times smaller the factors must be, else uncompressed", .value = 2, .high = 1e6},
    OptionSpec{.name = "orthogonal", .about = "passes of Gram-Schmidt; once is faster at high ranks", .words = "twice|once"},
    OptionSpec{.name = "warm", .about = "0: starts from a new random factor at each call", .value = 1, .high = 1, .whole = true},
    OptionSpec{.name = "feedback", .about = "0: forgets what has not been sent", .value = 1, .high = 1, .whole = true}};

constexpr std::size_t kRowsAtOnce = 4;

// About normal, variance 1: the sum of four 16-bit integers. Without a library's logarithms the bits are every machine's.
float draw(std::uint64_t seed, std::size_t i) {
  const std::uint64_t bits = engine::mix(seed + (i + 1) * 0x9e3779b97f4a7c15);
  std::int64_t sum = -2 * 0xffff;
  for (int part = 0; part < 4; ++part) sum += static_cast<std::int64_t>((bits >> (16 * part)) & 0xffff);
  return static_cast<float>(sum) * 0x1.bb67aep-17F;  // sqrt(3) / 2^17
}

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

class PowerSgd final : public Compressor {
 public:
  PowerSgd(const Options& options, Shape shape, std::uint64_t seed)
      : shape_(shape),
        rank_(std::min({options.whole("rank"), shape.rows, shape.columns()})),
        start_(options.whole("start")),
        passes_(options.word("orthogonal") == "once" ? 1 : 2),
        warm_(options.flag("warm")),
        seed_(seed) {
    const double elements = static_cast<double>(shape.elements);
    const double factors = static_cast<double>(rank_) * static_cast<double>(shape.rows + shape.columns());
    compresses_ = shape.is_matrix() && elements > options.number("min_rate") * factors;
    if (!compresses_) return;
    q_.resize(rank_ * shape.columns());
    if (options.flag("feedback")) residual_.resize(shape.elements);
  }

  Stages all_reduce(Tensor tensor, Place place) override;

  void save(StateWriter& out) const override {
    out.number(dense_calls_);
    out.number(draws_);
    out.floats(q_);
    out.floats(residual_);
  }
  Status load(StateReader& in) override {
    const std::uint64_t dense_calls = in.number(), draws = in.number();
    std::vector<float> q(q_.size()), residual(residual_.size());
    in.floats(q);
    if (!in.floats(residual))
      return fail(Code::invalid_argument, "the state is not one of {} x {}, rank {}", shape_.rows, shape_.columns(), rank_);
    dense_calls_ = dense_calls;
    draws_ = draws;
    q_.swap(q);
    residual_.swap(residual);
    return {};
  }

 private:
  low_rank::Rows meant(const Tensor& tensor, std::size_t first);
  std::uint64_t draw_columns();
  void project(const Tensor& tensor);
  void finish(const Tensor& tensor);

  const Shape shape_;
  const std::size_t rank_;
  const std::size_t start_;
  const int passes_;
  const bool warm_;
  const std::uint64_t seed_;
  bool compresses_ = false;

  std::uint64_t dense_calls_ = 0;  // counted up to start
  std::uint64_t draws_ = 0;        // columns of Q drawn so far
  std::vector<float> q_;           // [rank][columns]: the last call's; a zero column is drawn anew
  std::vector<float> residual_;    // E; empty: no feedback

  std::vector<float> p_, start_q_, own_q_, sum_q_;
  std::vector<float> meant_, sent_;  // a few rows
};

// A few rows of M, from `first` on.
low_rank::Rows PowerSgd::meant(const Tensor& tensor, std::size_t first) {
  const std::size_t columns = shape_.columns(), count = std::min(kRowsAtOnce, shape_.rows - first);
  const float* from = tensor.input + first * columns;
  if (tensor.scale == 1 && residual_.empty()) return {from, first, count, columns};
  const float* kept = residual_.empty() ? nullptr : residual_.data() + first * columns;
  for (std::size_t i = 0; i < count * columns; ++i) meant_[i] = tensor.scale * from[i] + (kept != nullptr ? kept[i] : 0.0F);
  return {meant_.data(), first, count, columns};
}

// The columns of Q to start from. A column that has become zero (the gradient was, or had fewer directions than columns) would
// stay so: it gets a new direction. Lengths are of no use, and a tiny or huge gradient's would square its magnitude. Q is the
// same on all ranks, so all draw alike. Returns the columns drawn so far.
std::uint64_t PowerSgd::draw_columns() {
  const std::size_t columns = shape_.columns();
  start_q_ = q_;
  std::uint64_t next = draws_;
  for (std::size_t j = 0; j < rank_; ++j) {
    const std::span<float> column(start_q_.data() + j * columns, columns);
    const bool empty = std::all_of(column.begin(), column.end(), [](float x) { return x == 0; });
    if (warm_ && !empty) {
      low_rank::orthonormalise(column.data(), columns, 1, 1);
      continue;
    }
    const std::uint64_t seed = engine::mix(seed_ + ++next);
    for (std::size_t k = 0; k < columns; ++k) column[k] = draw(seed, k);
  }
  return next;
}

// The result and what is left of M, row by row: input and output may be the same memory.
void PowerSgd::finish(const Tensor& tensor) {
  const std::size_t rows = shape_.rows, columns = shape_.columns();
  const std::span<float> sent(sent_.data(), columns);
  for (std::size_t first = 0; first < rows; first += kRowsAtOnce) {
    const low_rank::Rows some = meant(tensor, first);
    for (std::size_t i = first; i < first + some.count; ++i) {
      if (tensor.measure || !residual_.empty()) {
        const std::span<const float> row(some.data + (i - first) * columns, columns);
        low_rank::expand(p_.data(), rows, own_q_.data(), columns, rank_, i, sent.data());
        if (tensor.measure) add_error(row, sent, report_);
        if (!residual_.empty()) keep_residual(row, sent, {residual_.data() + i * columns, columns});
      }
      low_rank::expand(p_.data(), rows, sum_q_.data(), columns, rank_, i, tensor.output + i * columns);
    }
  }
}

// Q_k, and a copy that is to be summed.
void PowerSgd::project(const Tensor& tensor) {
  own_q_.assign(q_.size(), 0);
  for (std::size_t first = 0; first < shape_.rows; first += kRowsAtOnce)
    low_rank::multiply_transposed(meant(tensor, first), p_.data(), shape_.rows, rank_, own_q_.data());
  sum_q_ = own_q_;
}

Stages PowerSgd::all_reduce(Tensor tensor, Place /*place*/) {
  report_ = {};
  if (compresses_ && dense_calls_ >= start_) {
    const auto start = std::chrono::steady_clock::now();
    p_.resize(rank_ * shape_.rows);
    meant_.resize(kRowsAtOnce * shape_.columns());
    sent_.resize(shape_.columns());
    const std::uint64_t draws = draw_columns();
    for (std::size_t first = 0; first < shape_.rows; first += kRowsAtOnce)
      low_rank::multiply(meant(tensor, first), start_q_.data(), rank_, p_.data(), shape_.rows);
    report_.encode_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    co_yield compress::all_reduce(p_.data(), p_.size());

    // A NaN or an infinity of any rank's row is in that row's sum, and all ranks see it.
    if (all_finite(p_)) {
      low_rank::orthonormalise(p_.data(), shape_.rows, rank_, passes_);
      project(tensor);
      co_yield compress::all_reduce(sum_q_.data(), sum_q_.size());

      if (all_finite(sum_q_)) {
        report_.encoded_bytes = sizeof(float) * (p_.size() + sum_q_.size());
        finish(tensor);
        q_ = sum_q_;
        draws_ = draws;
        co_return Status();
      }
    }
  }
  if (dense_calls_ < start_) ++dense_calls_;
  report_.dense = true;
  report_.encoded_bytes = sizeof(float) * tensor.elements;
  for (std::size_t i = 0; i < tensor.elements; ++i) tensor.output[i] = tensor.scale * tensor.input[i];
  co_yield compress::all_reduce(tensor.output, tensor.elements);
  co_return Status();
}

}  // namespace

extern const Kind powersgd_kind;
const Kind powersgd_kind{.name = "powersgd",
                         .about = "matrices as products of two thin factors, linear: two small all-reduces",
                         .options = kOptions,
                         .make = make_compressor<PowerSgd>};

}  // namespace shoal::compress
