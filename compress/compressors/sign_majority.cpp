// SPDX-License-Identifier: Apache-2.0
// signSGD with majority vote: one bit an element up, one bit down. Bernstein et al., "signSGD with majority vote", ICLR 2019;
// with momentum it is Signum; with feedback the sent part is that of EF-signSGD: Karimireddy et al., ICML 2019.
//
//   m_k  = momentum m_k + (1 - momentum) s G_k
//   v_k  = m_k + e_k                               e_k: 0 without feedback
//   sent = a_k sign(v_k),  a_k = mean |v_k|        bits to the owners of stripes; a_k, or that v_k is not finite, to all
//   result = sign(sum_k sign(v_k)) * A             A: 1, or sum_k a_k (for a mean, with s = 1 / world: the mean over ranks)
//   e_k  = v_k - sent
//
// A vote of zero, and a tie, count as + and - in turn, by element plus call: one bit has no third value, and always the same sign
// would push what has no gradient at all in one direction for ever.
//
// The vote is biased for two ranks and more: a rank's residual knows what it has sent, not what the majority made of it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "compress/calls.h"
#include "compress/compressor.h"

namespace shoal::compress {
namespace {

constexpr std::array kOptions = {
    OptionSpec{
        .name = "magnitude", .about = "of the result: one, or the sum over ranks of their mean magnitudes", .words = "one|mean"},
    OptionSpec{.name = "momentum", .about = "of the running mean of gradients whose sign is sent", .high = 0.9999},
    OptionSpec{.name = "feedback", .about = "1: keeps what the sign has lost for the next call", .high = 1, .whole = true}};

std::size_t bit_bytes(std::size_t n) { return (n + 7) / 8; }

bool bit(const std::byte* bits, std::size_t i) { return ((std::to_integer<unsigned>(bits[i / 8]) >> (i % 8)) & 1) != 0; }

class SignMajority final : public Compressor {
 public:
  SignMajority(const Options& options, Shape shape)
      : elements_(shape.elements),
        of_one_(options.word("magnitude") == "one"),
        momentum_(static_cast<float>(options.number("momentum"))) {
    if (momentum_ > 0) mean_.resize(elements_);
    if (options.flag("feedback")) residual_.resize(elements_);
  }

  Stages all_reduce(Tensor tensor, Place place) override;

  void save(StateWriter& out) const override {
    out.number(elements_);
    out.number(calls_);
    out.floats(mean_);
    out.floats(residual_);
  }
  Status load(StateReader& in) override {
    const std::uint64_t elements = in.number(), calls = in.number();
    std::vector<float> mean(mean_.size()), residual(residual_.size());
    in.floats(mean);
    if (!in.floats(residual) || elements != elements_)
      return fail(Code::invalid_argument, "the state is not one of {} elements", elements_);
    calls_ = calls;
    mean_.swap(mean);
    residual_.swap(residual);
    return {};
  }

 private:
  plan::Range stripe(World world, std::size_t q) const {
    return plan::chunk_range({elements_}, world.value, static_cast<std::int32_t>(q));
  }
  float mean(const Tensor& tensor, std::size_t i) const {
    const float x = tensor.scale * tensor.input[i];
    return mean_.empty() ? x : momentum_ * mean_[i] + (1 - momentum_) * x;
  }
  float vote(const Tensor& tensor, std::size_t i) const { return mean(tensor, i) + (residual_.empty() ? 0.0F : residual_[i]); }
  // Zero: in turn.
  bool is_positive(float x, std::size_t i) const { return x > 0 || (x == 0 && ((i + calls_) & 1) == 0); }
  void encode(const Tensor& tensor, World world);
  float sum_of_magnitudes(std::size_t own, World world) const;
  void decide(plan::Range own, World world);
  void keep(const Tensor& tensor);

  const std::size_t elements_;
  const bool of_one_;
  const float momentum_;
  std::uint64_t calls_ = 0;
  std::vector<float> mean_;      // m; empty: no momentum
  std::vector<float> residual_;  // e; empty: no feedback

  float magnitude_ = 0;  // a_k
  BlockLengths lengths_;
  std::vector<std::byte> votes_;    // of all stripes of one rank: bits, then the magnitude
  std::vector<std::byte> arrived_;  // of this rank's stripe of all ranks
  std::vector<std::byte> own_;      // the majorities of this rank's stripe
  std::vector<std::byte> all_;      // and of all stripes
  std::vector<std::int32_t> counts_;
};

// Bits, and to every rank mean |v|: infinity if there is a v that is not finite.
void SignMajority::encode(const Tensor& tensor, World world) {
  const auto ranks = static_cast<std::size_t>(world.value);
  double sum = 0;
  for (std::size_t q = 0; q < ranks; ++q) {
    const auto [begin, end] = stripe(world, q);
    std::byte* to = votes_.data() + lengths_.sent_at(q);
    for (std::size_t first = begin; first < end; first += 8) {
      unsigned bits = 0;
      for (std::size_t i = first; i < std::min(end, first + 8); ++i) {
        const float v = vote(tensor, i);
        sum += std::abs(static_cast<double>(v));
        bits |= static_cast<unsigned>(is_positive(v, i)) << (i - first);
      }
      *to++ = static_cast<std::byte>(bits);
    }
  }
  magnitude_ = elements_ == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(elements_));
  if (!std::isfinite(sum)) magnitude_ = std::numeric_limits<float>::infinity();
  for (std::size_t q = 0; q < ranks; ++q)
    std::memcpy(votes_.data() + lengths_.sent_at(q) + bit_bytes(stripe(world, q).length()), &magnitude_, sizeof magnitude_);
}

// Of all ranks' magnitudes, in their order: the same on all ranks.
float SignMajority::sum_of_magnitudes(std::size_t own, World world) const {
  double sum = 0;
  for (std::size_t q = 0; q < static_cast<std::size_t>(world.value); ++q) {
    float each;
    std::memcpy(&each, arrived_.data() + lengths_.received_at(q) + bit_bytes(own), sizeof each);
    sum += static_cast<double>(each);
  }
  return static_cast<float>(sum);
}

void SignMajority::decide(plan::Range own, World world) {
  std::fill_n(counts_.begin(), own.length(), 0);
  for (std::size_t q = 0; q < static_cast<std::size_t>(world.value); ++q) {
    const std::byte* votes = arrived_.data() + lengths_.received_at(q);
    for (std::size_t i = 0; i < own.length(); ++i) counts_[i] += bit(votes, i) ? 1 : -1;
  }
  std::fill(own_.begin(), own_.end(), std::byte{0});
  for (std::size_t i = 0; i < own.length(); ++i)
    if (is_positive(static_cast<float>(counts_[i]), own.begin + i)) own_[i / 8] |= std::byte{1} << (i % 8);
}

void SignMajority::keep(const Tensor& tensor) {
  if (!tensor.measure && mean_.empty() && residual_.empty()) return;
  for (std::size_t i = 0; i < elements_; ++i) {
    const float v = vote(tensor, i), left = v - (is_positive(v, i) ? magnitude_ : -magnitude_);
    if (tensor.measure) {
      report_.squared_error += static_cast<double>(left) * static_cast<double>(left);
      report_.squared_norm += static_cast<double>(v) * static_cast<double>(v);
    }
    if (!mean_.empty()) mean_[i] = mean(tensor, i);
    if (!residual_.empty()) residual_[i] = left;
  }
}

Stages SignMajority::all_reduce(Tensor tensor, Place place) {
  const auto start = std::chrono::steady_clock::now();
  const auto ranks = static_cast<std::size_t>(place.world.value), self = static_cast<std::size_t>(place.rank.value);
  const plan::Range own = stripe(place.world, self);
  const std::size_t arriving = bit_bytes(own.length()) + sizeof magnitude_;
  report_ = {};

  lengths_.renew(place.world);
  std::size_t bytes = 0;
  for (std::size_t q = 0; q < ranks; ++q) {
    lengths_.sent()[q] = bit_bytes(stripe(place.world, q).length()) + sizeof magnitude_;
    lengths_.received()[q] = arriving;
    bytes += lengths_.sent()[q];
  }
  votes_.resize(bytes);
  arrived_.resize(ranks * arriving);
  own_.resize(bit_bytes(own.length()));
  all_.resize(bytes - ranks * sizeof magnitude_);
  counts_.resize(own.length());
  const engine::Call exchange = lengths_.all_to_all(votes_.data(), arrived_.data());
  encode(tensor, place.world);
  report_.encoded_bytes = bytes;
  report_.encode_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  co_yield exchange;

  const float magnitudes = sum_of_magnitudes(own.length(), place.world);
  if (!std::isfinite(magnitudes)) {
    report_.dense = true;
    report_.encoded_bytes += sizeof(float) * elements_;
    for (std::size_t i = 0; i < elements_; ++i) tensor.output[i] = tensor.scale * tensor.input[i];
    co_yield compress::all_reduce(tensor.output, elements_);
    co_return Status();
  }
  decide(own, place.world);
  lengths_.renew(place.world);
  for (std::size_t q = 0; q < ranks; ++q) lengths_.received()[q] = bit_bytes(stripe(place.world, q).length());
  co_yield lengths_.all_gather(own_.data(), all_.data());

  keep(tensor);
  ++calls_;
  const float magnitude = of_one_ ? 1.0F : magnitudes;
  for (std::size_t q = 0; q < ranks; ++q) {
    const auto [begin, end] = stripe(place.world, q);
    const std::byte* bits = all_.data() + lengths_.received_at(q);
    for (std::size_t i = begin; i < end; ++i) tensor.output[i] = bit(bits, i - begin) ? magnitude : -magnitude;
  }
  co_return Status();
}

}  // namespace

extern const Kind sign_majority_kind;
const Kind sign_majority_kind{.name = "sign_majority",
                              .about = "one bit an element both ways: signs, and the sign of their majority",
                              .options = kOptions,
                              .make = make_compressor<SignMajority>};

}  // namespace shoal::compress
