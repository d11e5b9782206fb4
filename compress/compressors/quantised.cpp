// SPDX-License-Identifier: Apache-2.0
#include "compress/compressors/quantised.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <vector>

#include "compress/calls.h"
#include "compress/codecs/codec.h"
#include "compress/errors.h"

namespace shoal::compress {
namespace {

constexpr std::array kOptions = {
    OptionSpec{.name = "feedback", .about = "1: keeps both roundings' errors for the next call", .high = 1, .whole = true}};

class Quantised final : public Compressor {
 public:
  Quantised(const Codec& codec, const Options& options, Shape shape, std::uint64_t seed)
      : codec_(codec), seed_(seed), elements_(shape.elements) {
    if (options.flag("feedback")) residual_.resize(elements_);
  }

  Stages all_reduce(Tensor tensor, Place place) override;

  void save(StateWriter& out) const override {
    out.number(calls_);
    out.floats(residual_);
    out.number(stripe_begin_);
    out.number(stripe_residual_.size());
    out.floats(stripe_residual_);
  }
  Status load(StateReader& in) override {
    const std::uint64_t calls = in.number();
    std::vector<float> residual(residual_.size());
    in.floats(residual);
    const std::uint64_t begin = in.number(), stripe = in.number();
    if (!in.ok() || stripe > elements_) return fail(Code::invalid_argument, "the state is not one of {} elements", elements_);
    std::vector<float> stripe_residual(stripe);
    if (!in.floats(stripe_residual)) return fail(Code::invalid_argument, "the state is not one of {} elements", elements_);
    calls_ = calls;
    residual_.swap(residual);
    stripe_begin_ = begin;
    stripe_residual_.swap(stripe_residual);
    return {};
  }

 private:
  bool feeds_back() const { return !residual_.empty(); }
  void encode_stripes(const Tensor& tensor, World world, std::uint64_t seed);
  void sum_stripe(plan::Range own, std::span<float> sum, World world);
  void encode_sum(std::span<float> sum, std::uint64_t seed);

  const Codec& codec_;
  std::uint64_t seed_;
  std::size_t elements_;
  std::uint64_t calls_ = 0;
  std::vector<float> residual_;         // of this rank's contributions; empty: no feedback
  std::vector<float> stripe_residual_;  // of the sums that this rank owns ...
  std::uint64_t stripe_begin_ = 0;      // ... which begin with this element

  BlockLengths lengths_;
  std::vector<std::byte> encoded_;  // all stripes of one rank, one after the other
  std::vector<std::byte> arrived_;  // this rank's stripe of all ranks
  std::vector<float> sum_;          // this rank's stripe
  std::vector<float> meant_;        // a stripe
};

// A stripe's elements.
plan::Range stripe(std::size_t elements, World world, std::size_t q) {
  return plan::chunk_range({elements}, world.value, static_cast<std::int32_t>(q));
}

void Quantised::encode_stripes(const Tensor& tensor, World world, std::uint64_t seed) {
  const auto ranks = static_cast<std::size_t>(world.value);
  std::byte* to = encoded_.data();
  for (std::size_t q = 0; q < ranks; ++q) {
    const auto [begin, end] = stripe(elements_, world, q);
    const std::size_t n = end - begin;
    const float* from = tensor.input + begin;
    if (tensor.scale != 1 || feeds_back()) {
      for (std::size_t i = 0; i < n; ++i) meant_[i] = tensor.scale * from[i] + (feeds_back() ? residual_[begin + i] : 0.0F);
      from = meant_.data();
    }
    codec_.encode(from, n, to, seed + q);
    if (feeds_back() || tensor.measure) {
      codec_.decode(to, n, sum_.data());
      if (tensor.measure) add_error({from, n}, {sum_.data(), n}, report_);
      if (feeds_back()) keep_residual({from, n}, {sum_.data(), n}, {residual_.data() + begin, n});
    }
    to += codec_.wire_bytes(n);
  }
}

void Quantised::sum_stripe(plan::Range own, std::span<float> sum, World world) {
  const std::size_t bytes = codec_.wire_bytes(sum.size());
  codec_.decode(arrived_.data(), sum.size(), sum.data());
  for (std::size_t q = 1; q < static_cast<std::size_t>(world.value); ++q)
    codec_.decode_add(arrived_.data() + q * bytes, sum.size(), sum.data());
  if (!feeds_back()) return;
  if (stripe_residual_.size() != sum.size() || stripe_begin_ != own.begin) {
    stripe_residual_.assign(sum.size(), 0);  // other elements than the last call's: the world has changed
    stripe_begin_ = own.begin;
  }
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += stripe_residual_[i];
}

void Quantised::encode_sum(std::span<float> sum, std::uint64_t seed) {
  codec_.encode(sum.data(), sum.size(), arrived_.data(), seed);
  if (!feeds_back()) return;
  codec_.decode(arrived_.data(), sum.size(), meant_.data());
  keep_residual(sum, {meant_.data(), sum.size()}, stripe_residual_);
}

Stages Quantised::all_reduce(Tensor tensor, Place place) {
  const auto start = std::chrono::steady_clock::now();
  const auto ranks = static_cast<std::size_t>(place.world.value), self = static_cast<std::size_t>(place.rank.value);
  // Draws of other calls, ranks and stripes are others.
  const std::uint64_t seed = seed_ + calls_++ * 0x9e3779b97f4a7c15 + (self + 1) * 0xd1342543de82ef95;
  const std::size_t longest = stripe(elements_, place.world, 0).length();
  const std::size_t own = stripe(elements_, place.world, self).length();
  report_ = {};

  lengths_.renew(place.world);
  std::size_t bytes = 0;
  for (std::size_t q = 0; q < ranks; ++q) {
    lengths_.sent()[q] = codec_.wire_bytes(stripe(elements_, place.world, q).length());
    lengths_.received()[q] = codec_.wire_bytes(own);
    bytes += lengths_.sent()[q];
  }
  encoded_.resize(bytes);
  arrived_.resize(ranks * codec_.wire_bytes(own));
  sum_.resize(longest);
  meant_.resize(longest);

  encode_stripes(tensor, place.world, seed);
  report_.encoded_bytes = bytes;
  report_.encode_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  co_yield lengths_.all_to_all(encoded_.data(), arrived_.data());

  sum_stripe(stripe(elements_, place.world, self), {sum_.data(), own}, place.world);
  encode_sum({sum_.data(), own}, seed + ranks);
  lengths_.renew(place.world);
  for (std::size_t q = 0; q < ranks; ++q) lengths_.received()[q] = codec_.wire_bytes(stripe(elements_, place.world, q).length());
  co_yield lengths_.all_gather(arrived_.data(), encoded_.data());

  for (std::size_t q = 0; q < ranks; ++q) {
    const auto [begin, end] = stripe(elements_, place.world, q);
    codec_.decode(encoded_.data() + lengths_.received_at(q), end - begin, tensor.output + begin);
  }
  co_return Status();
}

}  // namespace

Kind quantised(const Codec& codec) {
  return {.name = codec.name,
          .about = codec.about,
          .options = kOptions,
          .make = [](const Kind& kind, const Options& options, Shape shape, std::uint64_t seed) -> std::unique_ptr<Compressor> {
            return std::make_unique<Quantised>(*kind.codec, options, shape, seed);
          },
          .codec = &codec};
}

}  // namespace shoal::compress
