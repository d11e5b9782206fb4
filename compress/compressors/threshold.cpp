// SPDX-License-Identifier: Apache-2.0
// A fixed threshold (Strom, Interspeech 2015): r = r + g; of every element with |r| > tau a code travels that says +tau or -tau,
// 31 bits of index and the sign, and r loses as much. How much travels depends on the data; if it would take longer than the
// vector itself, all ranks sum vectors of +-tau.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "compress/calls.h"
#include "compress/compressor.h"
#include "compress/sparse/all_reduce.h"
#include "compress/sparse/floats.h"
#include "compress/sparse/from_rank.h"
#include "compress/sparse/kernels.h"

namespace shoal::compress {
namespace {

constexpr std::array kOptions = {OptionSpec{
    .name = "tau",
    .about = "what one code adds; where gradients stay above it, an element's residual grows by the excess with every call",
    .value = 0.001,
    .low = 1e-30,
    .high = 1e30}};

constexpr std::uint32_t kMinus = 0x80000000;
constexpr std::size_t kMostElements = std::size_t{1} << 31;

// What every rank tells all others first.
struct Announcement {
  std::uint64_t codes = 0;
  std::uint64_t finite = 1;
};

class Threshold final : public Compressor {
 public:
  Threshold(const Options& options, Shape shape)
      : elements_(shape.elements),
        tau_(static_cast<float>(options.number("tau"))),
        dense_(elements_ > kMostElements),
        residual_(dense_ ? 0 : elements_) {}

  Stages all_reduce(Tensor tensor, Place place) override;

  void save(StateWriter& out) const override { out.floats(residual_.now_span()); }
  Status load(StateReader& in) override {
    if (!in.floats(residual_.next_span()))
      return fail(Code::invalid_argument, "threshold: the state is not one of {} elements", elements_);
    residual_.step();
    return {};
  }

 private:
  float value_of(std::uint32_t code) const { return (code & kMinus) != 0 ? -tau_ : tau_; }
  bool encode(const Tensor& tensor);
  bool is_too_dense(const Place& place) const;
  Status add(const std::uint32_t* codes, std::size_t count, float* sum) const;

  std::size_t elements_;
  float tau_;
  bool dense_;
  sparse::Remembered residual_;  // r

  std::vector<std::uint32_t> codes_, arrived_;
  std::vector<std::uint32_t> indices_;  // of a block
  std::vector<float> values_;
  Announcement announcement_;
  std::vector<Announcement> announced_;  // [rank]
  BlockLengths lengths_;
};

// Codes into codes_, what is left into the next residual. False if something is not finite.
bool Threshold::encode(const Tensor& tensor) {
  const sparse::Accumulation step{.input = tensor.input,
                                  .scale = tensor.scale,
                                  .residual = residual_.now(),
                                  .next_residual = residual_.next(),
                                  .stream = elements_ * sizeof(float) >= sparse::kStreamBytes};
  indices_.resize(sparse::kBlock + sparse::kSlack);
  values_.resize(sparse::kBlock + sparse::kSlack);
  codes_.clear();
  std::uint32_t largest = 0;
  for (std::size_t begin = 0; begin < elements_; begin += sparse::kBlock) {
    const std::size_t end = std::min(elements_, begin + sparse::kBlock);
    const std::size_t over =
        sparse::accumulate(step, begin, end, sparse::magnitude(tau_) + 1, indices_.data(), values_.data(), largest);
    if (tensor.measure) report_.squared_norm += sparse::sum_of_squares(residual_.next() + begin, end - begin);
    for (std::size_t i = 0; i < over; ++i) {
      const std::uint32_t code = indices_[i] | (values_[i] < 0 ? kMinus : 0);
      residual_.next()[indices_[i]] = values_[i] - value_of(code);
      codes_.push_back(code);
    }
    if (tensor.measure) report_.squared_error += sparse::sum_of_squares(residual_.next() + begin, end - begin);
  }
  report_.selected = codes_.size();
  return largest < sparse::kInfinite;
}

bool Threshold::is_too_dense(const Place& place) const {
  std::uint64_t longest = 0;
  for (const Announcement& each : announced_) longest = std::max(longest, each.codes);
  if (longest == 0) return false;
  return place.predict(compress::all_gather(nullptr, nullptr, longest * sizeof(std::uint32_t))) >
         place.predict(compress::all_reduce(nullptr, elements_));
}

Status Threshold::add(const std::uint32_t* codes, std::size_t count, float* sum) const {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t index = codes[i] & ~kMinus;
    if (index >= elements_) return fail(Code::invalid_usage, "code {} is of element {}, there are {}", i, index, elements_);
    sum[index] += value_of(codes[i]);
  }
  return {};
}

Stages Threshold::all_reduce(Tensor tensor, Place place) {
  const auto start = std::chrono::steady_clock::now();
  const auto ranks = static_cast<std::size_t>(place.world.value);
  report_ = {};
  announcement_ = {};
  if (!dense_ && !encode(tensor)) announcement_.finite = 0;
  announcement_.codes = announcement_.finite != 0 ? codes_.size() : 0;
  announced_.resize(ranks);
  report_.encoded_bytes = announcement_.codes * sizeof(std::uint32_t);
  report_.encode_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  co_yield compress::all_gather(&announcement_, announced_.data(), sizeof announcement_);

  const bool finite =
      std::all_of(announced_.begin(), announced_.end(), [](const Announcement& each) { return each.finite != 0; });
  if (!finite || dense_ || is_too_dense(place)) {
    report_.encoded_bytes = elements_ * sizeof(float);
    report_.dense = true;
    if (!finite || dense_) {
      sparse::write_scaled(tensor);
    } else {
      sparse::fill_zero(tensor.output, elements_);
      if (Status status = add(codes_.data(), codes_.size(), tensor.output); !status.is_ok()) co_return status;
    }
    co_yield compress::all_reduce(tensor.output, elements_);
    if (finite) residual_.step();
    co_return Status();
  }

  lengths_.renew(place.world);
  std::size_t codes = 0;
  for (std::size_t q = 0; q < ranks; ++q) {
    lengths_.received()[q] = announced_[q].codes * sizeof(std::uint32_t);
    codes += announced_[q].codes;
  }
  arrived_.resize(codes);
  co_yield lengths_.all_gather(reinterpret_cast<const std::byte*>(codes_.data()), reinterpret_cast<std::byte*>(arrived_.data()));

  sparse::fill_zero(tensor.output, elements_);
  for (std::size_t q = 0; q < ranks; ++q) {
    const std::uint32_t* from = arrived_.data() + lengths_.received_at(q) / sizeof(std::uint32_t);
    if (Status status = add(from, announced_[q].codes, tensor.output); !status.is_ok()) co_return sparse::from_rank(q, status);
  }
  residual_.step();
  co_return Status();
}

}  // namespace

extern const Kind threshold_kind;
const Kind threshold_kind{.name = "threshold",
                          .about = "+-tau of every accumulated element that is larger, 4 bytes each (Strom)",
                          .options = kOptions,
                          .make = make_compressor<Threshold>};

}  // namespace shoal::compress
