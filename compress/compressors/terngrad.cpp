// SPDX-License-Identifier: Apache-2.0
// TernGrad with one scale for all ranks: every element is -s, 0 or s, at random, so that its expected value is the element. Wen
// et al., "TernGrad", NeurIPS 2017.
//
//   g     clipped to +-(clip * sigma_k)     sigma_k: root mean square of rank k's tensor
//   s     = max over ranks of max |g|       all-reduce of one float; infinite if any rank's tensor is not finite
//   code  = sign(g) with probability |g| / s, else 0
//
// Codes go to the owners of stripes, 2 bits each; an owner adds them as integers in [-p, p], and sends ceil(log2(2 p + 1)) bits
// an element to all: the second step rounds nothing. result = s * sum. Variance of an element: s |g| - g^2 a rank.
//
// The paper's sigma is the standard deviation about the mean. About zero it is the same for gradients, whose mean is next to
// nothing, and a constant tensor is not clipped to zero.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "compress/calls.h"
#include "compress/compressor.h"
#include "engine/mix.h"

namespace shoal::compress {
namespace {

constexpr std::array kOptions = {
    OptionSpec{.name = "clip",
               .about = "largest magnitude that is kept, in root mean squares of the tensor; 0: any",
               .value = 2.5,
               .high = 1e6},
    OptionSpec{.name = "min_elements", .about = "shorter tensors go uncompressed", .value = 1024, .high = 1e15, .whole = true}};

constexpr unsigned kCodeBits = 2;

// Uniform in [0, 1), a multiple of 2^-24.
float uniform(std::uint64_t seed, std::size_t i) {
  return static_cast<float>(engine::mix(seed + i * 0x9e3779b97f4a7c15) >> 40) * 0x1p-24F;
}

std::size_t packed_bytes(std::size_t n, unsigned bits) { return (n * bits + 7) / 8; }

// Values of `bits` bits, the first one in the lowest bits; the last byte is filled up with zeros.
class Packer {
 public:
  Packer(std::byte* to, unsigned bits) : to_(to), bits_(bits) {}
  void put(std::uint32_t value) {
    waiting_ |= std::uint64_t{value} << count_;
    for (count_ += bits_; count_ >= 8; count_ -= 8, waiting_ >>= 8) *to_++ = static_cast<std::byte>(waiting_);
  }
  void end() {
    if (count_ > 0) *to_ = static_cast<std::byte>(waiting_);
  }

 private:
  std::byte* to_;
  unsigned bits_, count_ = 0;
  std::uint64_t waiting_ = 0;
};

class Unpacker {
 public:
  Unpacker(const std::byte* from, unsigned bits) : from_(from), bits_(bits) {}
  std::uint32_t get() {
    for (; count_ < bits_; count_ += 8) waiting_ |= std::to_integer<std::uint64_t>(*from_++) << count_;
    const auto value = static_cast<std::uint32_t>(waiting_ & ((std::uint64_t{1} << bits_) - 1));
    waiting_ >>= bits_;
    count_ -= bits_;
    return value;
  }

 private:
  const std::byte* from_;
  unsigned bits_, count_ = 0;
  std::uint64_t waiting_ = 0;
};

class TernGrad final : public Compressor {
 public:
  TernGrad(const Options& options, Shape shape, std::uint64_t seed)
      : elements_(shape.elements),
        compresses_(shape.elements >= options.whole("min_elements")),
        clip_(options.number("clip")),
        seed_(seed) {}

  Stages all_reduce(Tensor tensor, Place place) override;

  void save(StateWriter& out) const override {
    out.number(elements_);
    out.number(calls_);
  }
  Status load(StateReader& in) override {
    const std::uint64_t elements = in.number(), calls = in.number();
    if (!in.ok() || elements != elements_) return fail(Code::invalid_argument, "the state is not one of {} elements", elements_);
    calls_ = calls;
    return {};
  }

 private:
  plan::Range stripe(World world, std::size_t q) const {
    return plan::chunk_range({elements_}, world.value, static_cast<std::int32_t>(q));
  }
  void find_limit(const Tensor& tensor);
  void encode(const Tensor& tensor, World world, std::uint64_t seed);
  void add_codes(std::size_t own, World world, unsigned sum_bits);
  void decode(const Tensor& tensor, World world, unsigned sum_bits) const;

  const std::size_t elements_;
  const bool compresses_;
  const double clip_;
  const std::uint64_t seed_;
  std::uint64_t calls_ = 0;  // compressed ones: each draws anew

  float limit_ = 0;  // largest magnitude of this rank
  float scale_ = 0;  // and of all
  BlockLengths lengths_;
  std::vector<std::byte> codes_, arrived_;  // of all stripes of one rank; of this rank's stripe of all ranks
  std::vector<std::int32_t> sums_;          // of this rank's stripe
  std::vector<std::byte> own_, all_;        // sums, packed
};

void TernGrad::find_limit(const Tensor& tensor) {
  float largest = 0;
  double squares = 0;
  bool finite = true;
  for (std::size_t i = 0; i < elements_; ++i) {
    const float x = std::abs(tensor.scale * tensor.input[i]);
    finite = finite && std::isfinite(x);
    largest = std::max(largest, x);
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  limit_ = largest;
  if (clip_ > 0 && elements_ > 0)
    limit_ = std::min(largest, static_cast<float>(clip_ * std::sqrt(squares / static_cast<double>(elements_))));
  if (!finite) limit_ = std::numeric_limits<float>::infinity();
}

// 0, 1 and 2 stand for 0, s and -s.
void TernGrad::encode(const Tensor& tensor, World world, std::uint64_t seed) {
  for (std::size_t q = 0; q < static_cast<std::size_t>(world.value); ++q) {
    const auto [begin, end] = stripe(world, q);
    Packer packer(codes_.data() + lengths_.sent_at(q), kCodeBits);
    for (std::size_t i = begin; i < end; ++i) {
      const float x = tensor.scale * tensor.input[i];
      // Below |g| / s, without a division by a scale of zero.
      const bool kept = uniform(seed, i) * scale_ < std::min(std::abs(x), limit_);
      packer.put(!kept ? 0U : x > 0 ? 1U : 2U);
      if (tensor.measure) {
        const double off = static_cast<double>(x) - (!kept ? 0.0 : x > 0 ? scale_ : -scale_);
        report_.squared_error += off * off;
        report_.squared_norm += static_cast<double>(x) * static_cast<double>(x);
      }
    }
    packer.end();
  }
}

void TernGrad::add_codes(std::size_t own, World world, unsigned sum_bits) {
  std::fill_n(sums_.begin(), own, 0);
  for (std::size_t q = 0; q < static_cast<std::size_t>(world.value); ++q) {
    Unpacker unpacker(arrived_.data() + lengths_.received_at(q), kCodeBits);
    for (std::size_t i = 0; i < own; ++i) {
      const auto code = static_cast<std::int32_t>(unpacker.get());
      sums_[i] += (code & 1) - (code >> 1);
    }
  }
  // From 0 on, for a field of bits.
  Packer packer(own_.data(), sum_bits);
  for (std::size_t i = 0; i < own; ++i) packer.put(static_cast<std::uint32_t>(sums_[i] + world.value));
  packer.end();
}

void TernGrad::decode(const Tensor& tensor, World world, unsigned sum_bits) const {
  for (std::size_t q = 0; q < static_cast<std::size_t>(world.value); ++q) {
    const auto [begin, end] = stripe(world, q);
    Unpacker unpacker(all_.data() + lengths_.received_at(q), sum_bits);
    for (std::size_t i = begin; i < end; ++i)
      tensor.output[i] = scale_ * static_cast<float>(static_cast<std::int32_t>(unpacker.get()) - world.value);
  }
}

Stages TernGrad::all_reduce(Tensor tensor, Place place) {
  const auto ranks = static_cast<std::size_t>(place.world.value), self = static_cast<std::size_t>(place.rank.value);
  const std::size_t own = stripe(place.world, self).length();
  report_ = {};
  if (compresses_) {
    auto start = std::chrono::steady_clock::now();
    const auto lap = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    find_limit(tensor);
    scale_ = limit_;
    report_.encode_s = lap();
    co_yield compress::all_reduce(&scale_, 1, ReduceOp::max);

    if (std::isfinite(scale_)) {
      start = std::chrono::steady_clock::now();
      const unsigned sum_bits = static_cast<unsigned>(std::bit_width(2 * ranks));
      lengths_.renew(place.world);
      std::size_t bytes = 0, sum_bytes = 0;
      for (std::size_t q = 0; q < ranks; ++q) {
        const std::size_t length = stripe(place.world, q).length();
        lengths_.sent()[q] = packed_bytes(length, kCodeBits);
        lengths_.received()[q] = packed_bytes(own, kCodeBits);
        bytes += lengths_.sent()[q];
        sum_bytes += packed_bytes(length, sum_bits);
      }
      codes_.resize(bytes);
      arrived_.resize(ranks * packed_bytes(own, kCodeBits));
      sums_.resize(own);
      own_.resize(packed_bytes(own, sum_bits));
      all_.resize(sum_bytes);

      const engine::Call exchange = lengths_.all_to_all(codes_.data(), arrived_.data());
      // Draws of other calls and ranks are others.
      encode(tensor, place.world, engine::mix(seed_ + calls_++ * 0x9e3779b97f4a7c15 + (self + 1) * 0xd1342543de82ef95));
      report_.encoded_bytes = sizeof scale_ + bytes;
      report_.encode_s += lap();
      co_yield exchange;

      add_codes(own, place.world, sum_bits);
      lengths_.renew(place.world);
      for (std::size_t q = 0; q < ranks; ++q) lengths_.received()[q] = packed_bytes(stripe(place.world, q).length(), sum_bits);
      co_yield lengths_.all_gather(own_.data(), all_.data());

      decode(tensor, place.world, sum_bits);
      co_return Status();
    }
  }
  report_.dense = true;
  report_.encoded_bytes = sizeof(float) * tensor.elements;
  for (std::size_t i = 0; i < tensor.elements; ++i) tensor.output[i] = tensor.scale * tensor.input[i];
  co_yield compress::all_reduce(tensor.output, tensor.elements);
  co_return Status();
}

}  // namespace

extern const Kind terngrad_kind;
const Kind terngrad_kind{.name = "terngrad",
                         .about = "-s, 0 or s at random, unbiased, 2 bits an element up; sums of codes down, exactly",
                         .options = kOptions,
                         .make = make_compressor<TernGrad>};

}  // namespace shoal::compress
