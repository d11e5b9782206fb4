// SPDX-License-Identifier: Apache-2.0
// Random k: all ranks draw the same places from a seed that they share, so that values alone travel, and their sum is a plain
// all-reduce of k numbers. One more number travels with them: how many ranks' inputs are not finite.
//
// The vector is cut into k parts as equal as can be, and one place is drawn from each: k distinct places in order, every element
// as likely as any other (but for parts that are one element longer), in O(k).
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "compress/calls.h"
#include "compress/compressor.h"
#include "compress/sparse/all_reduce.h"
#include "compress/sparse/floats.h"
#include "compress/sparse/select.h"

namespace shoal::compress {
namespace {

constexpr std::array kOptions = {
    OptionSpec{.name = "density", .about = "share of the elements that is sent", .value = 0.01, .low = 1e-7, .high = 1},
    OptionSpec{.name = "feedback",
               .about = "1: what is not sent is kept for the next call; 0: it is lost",
               .value = 1,
               .high = 1,
               .whole = true}};

class RandomK final : public Compressor {
 public:
  RandomK(const Options& options, Shape shape, std::uint64_t seed)
      : elements_(shape.elements),
        kept_(static_cast<std::size_t>(sparse::kept(options.number("density"), shape.elements))),
        seed_(seed),
        residual_(options.flag("feedback") ? elements_ : 0) {}

  Stages all_reduce(Tensor tensor, Place place) override;

  void save(StateWriter& out) const override {
    out.number(calls_);
    out.floats(residual_.now_span());
  }
  Status load(StateReader& in) override {
    const std::uint64_t calls = in.number();
    in.floats(residual_.next_span());
    if (!in.ok())
      return fail(Code::invalid_argument, "randomk: the state is not one of {} elements with these options", elements_);
    calls_ = calls;
    residual_.step();
    return {};
  }

 private:
  void draw();
  void contribute(const Tensor& tensor);

  std::size_t elements_, kept_;
  std::uint64_t seed_;

  std::uint64_t calls_ = 0;
  sparse::Remembered residual_;

  std::vector<std::size_t> places_;  // [kept], increasing
  std::vector<float> values_;        // [kept], and the number of ranks that are not finite
};

void RandomK::draw() {
  places_.resize(kept_);
  values_.resize(kept_ + 1);
  const std::size_t share = kept_ == 0 ? 0 : elements_ / kept_, extra = kept_ == 0 ? 0 : elements_ % kept_;
  std::size_t begin = 0;
  for (std::size_t part = 0; part < kept_; ++part) {
    const std::size_t length = share + (part < extra ? 1 : 0);
    places_[part] = begin + sparse::mixed(sparse::mixed(seed_ + calls_) + part) % length;
    begin += length;
  }
}

// Fills in values_; what is left goes to the next residual.
void RandomK::contribute(const Tensor& tensor) {
  const sparse::Accumulation step{.input = tensor.input,
                                  .scale = tensor.scale,
                                  .residual = residual_.now(),
                                  .next_residual = residual_.next(),
                                  .stream = elements_ * sizeof(float) >= sparse::kStreamBytes};
  const bool finite = sparse::advance(step, elements_);
  values_.back() = finite ? 0.0F : 1.0F;
  if (!finite) {
    std::fill(values_.begin(), values_.end() - 1, 0.0F);
    return;
  }
  const auto meant = [&](std::size_t i) { return residual_.empty() ? tensor.scale * tensor.input[i] : residual_.next()[i]; };
  std::transform(places_.begin(), places_.end(), values_.begin(), meant);
  report_.selected = kept_;
  if (tensor.measure) {
    std::size_t sent = 0;
    for (std::size_t i = 0; i < elements_; ++i) {
      const double square = static_cast<double>(meant(i)) * static_cast<double>(meant(i));
      const bool is_sent = sent < kept_ && places_[sent] == i;
      sent += is_sent ? 1 : 0;
      report_.squared_norm += square;
      report_.squared_error += is_sent ? 0 : square;
    }
  }
  if (!residual_.empty())
    for (const std::size_t place : places_) residual_.next()[place] = 0;
}

Stages RandomK::all_reduce(Tensor tensor, Place /*place*/) {
  const auto start = std::chrono::steady_clock::now();
  report_ = {};
  draw();
  contribute(tensor);
  report_.encoded_bytes = values_.size() * sizeof(float);
  report_.encode_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  co_yield compress::all_reduce(values_.data(), values_.size());

  if (values_.back() != 0) {
    sparse::write_scaled(tensor);
    report_.encoded_bytes += elements_ * sizeof(float);
    report_.dense = true;
    co_yield compress::all_reduce(tensor.output, elements_);
    co_return Status();
  }
  sparse::fill_zero(tensor.output, elements_);
  for (std::size_t i = 0; i < kept_; ++i) tensor.output[places_[i]] = values_[i];
  ++calls_;
  residual_.step();
  co_return Status();
}

}  // namespace

extern const Kind randomk_kind;
const Kind randomk_kind{.name = "randomk",
                        .about = "k elements at places that all ranks draw alike; values alone travel",
                        .options = kOptions,
                        .make = make_compressor<RandomK>};

}  // namespace shoal::compress
