// SPDX-License-Identifier: Apache-2.0
#include "compress/codec_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "device/convert.h"

namespace reference {
namespace {

using namespace shoal::device;

enum class Scale { none, nearest, upper, largest, norm, mean };
enum class Code { float16, bfloat16, e4m3, e5m2, nearest, random, ternary, sign };

struct Format {
  std::string_view name;
  Code code;
  unsigned bits;
  Scale scale = Scale::none;
  std::size_t block = 1;
  int levels = 1;
  unsigned scale_bits() const { return scale == Scale::none ? 0 : scale == Scale::nearest || scale == Scale::upper ? 16 : 32; }
};

constexpr Format kFormats[] = {{"fp16", Code::float16, 16},
                               {"bf16", Code::bfloat16, 16},
                               {"fp8_e4m3", Code::e4m3, 8, Scale::nearest, 128, 448},
                               {"fp8_e5m2", Code::e5m2, 8, Scale::nearest, 128, 57344},
                               {"int8", Code::nearest, 8, Scale::nearest, 128, 127},
                               {"int4", Code::nearest, 4, Scale::nearest, 32, 7},
                               {"int8_stochastic", Code::random, 8, Scale::upper, 128, 127},
                               {"int4_stochastic", Code::random, 4, Scale::upper, 32, 7},
                               {"qsgd", Code::random, 8, Scale::norm, 512, 127},
                               {"qsgd4", Code::random, 4, Scale::norm, 512, 7},
                               {"ternary", Code::ternary, 2, Scale::largest, 2048},
                               {"sign", Code::sign, 1, Scale::mean, 1024}};

const Format& format_of(std::string_view name) {
  for (const Format& each : kFormats)
    if (each.name == name) return each;
  throw std::invalid_argument("a codec without a reference: " + std::string(name));
}

// Whole fields, lowest bit first; each block ends with a whole byte.
class BitWriter {
 public:
  void put(std::uint32_t value, unsigned bits) {
    for (unsigned b = 0; b < bits; ++b, ++at_) {
      if (at_ % 8 == 0) bytes_.push_back(std::byte{0});
      if ((value >> b & 1) != 0) bytes_.back() |= std::byte{1} << at_ % 8;
    }
  }
  void end_block() { at_ = 0; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;
};

class BitReader {
 public:
  explicit BitReader(const std::vector<std::byte>& bytes) : bytes_(bytes) {}
  std::uint32_t get(unsigned bits) {
    std::uint32_t value = 0;
    for (unsigned b = 0; b < bits; ++b, ++at_) value |= (static_cast<std::uint32_t>(bytes_.at(at_ / 8)) >> at_ % 8 & 1) << b;
    return value;
  }
  void end_block() { at_ = (at_ + 7) / 8 * 8; }

 private:
  const std::vector<std::byte>& bytes_;
  std::size_t at_ = 0;
};

// Sixteen partial sums, halved until one is left.
template <class Term>
double sum_of(std::span<const float> block, Term term) {
  double sums[16] = {};
  for (std::size_t i = 0; i < block.size(); ++i) sums[i % 16] += term(static_cast<double>(block[i]));
  for (std::size_t half : {8, 4, 2, 1})
    for (std::size_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  return sums[0];
}

float scale_of(const Format& format, std::span<const float> block) {
  float largest = 0;
  for (const float x : block) {
    if (!std::isfinite(x)) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(x));
  }
  const auto levels = static_cast<float>(format.levels);
  switch (format.scale) {
    case Scale::none: break;
    case Scale::nearest: return from_bfloat16(to_bfloat16(std::max(largest / levels, 0x1p-126F)));
    case Scale::upper: {  // the smallest that suffices
      std::uint32_t bits = to_bfloat16(std::max(largest / levels, 0x1p-126F)) - 1U;
      while (from_bfloat16(static_cast<std::uint16_t>(bits)) * levels < largest || bits < 0x80) ++bits;
      return from_bfloat16(static_cast<std::uint16_t>(bits));
    }
    case Scale::largest: return std::max(largest, 0x1p-126F);
    case Scale::norm: {
      const double norm = std::sqrt(sum_of(block, [](double x) { return x * x; }));
      float unit = std::nextafter(static_cast<float>(norm / format.levels), 0.0F);
      while (static_cast<double>(unit) * format.levels < norm) unit = std::nextafter(unit, HUGE_VALF);
      return std::max(unit, 0x1p-126F);
    }
    case Scale::mean:
      return static_cast<float>(sum_of(block, [](double x) { return std::abs(x); }) / static_cast<double>(block.size()));
  }
  return 1;
}

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// A uniform integer below 2^24 for an element of a block.
float draw(std::uint64_t seed, std::size_t block, std::size_t i) {
  const std::uint64_t key = mixed(mixed(seed) + (block + 1) * 0x9E3779B97F4A7C15);
  auto x = static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(key);
  x = (x ^ (x >> 16)) * 0x7FEB352D;
  x ^= static_cast<std::uint32_t>(key >> 32);
  x = (x ^ (x >> 15)) * 0x846CA68B;
  x ^= x >> 16;
  return static_cast<float>(x >> 8);
}

std::uint32_t code_of(const Format& format, float x, float scale, float drawn) {
  const float inverse = 1 / scale;
  const std::uint32_t negative = x < 0 ? 1 : 0;
  switch (format.code) {
    case Code::float16: return to_float16(x);
    case Code::bfloat16: return to_bfloat16(x);
    case Code::e4m3: return to_float8_e4m3(x * inverse);
    case Code::e5m2: return to_float8_e5m2(x * inverse);
    case Code::nearest: return static_cast<std::uint32_t>(static_cast<int>(std::nearbyint(x * inverse)));
    case Code::random: {
      const float exact = x / scale, below = std::floor(exact);
      return static_cast<std::uint32_t>(static_cast<int>(below) + (drawn < (exact - below) * 0x1p24F ? 1 : 0));
    }
    case Code::ternary: return drawn < std::abs(x / scale) * 0x1p24F ? 1 | negative << 1 : 0;
    case Code::sign: return negative;
  }
  return 0;
}

float value_of(const Format& format, std::uint32_t code, float scale) {
  const float sign = (code >> (format.bits - 1) & 1) != 0 ? -1.0F : 1.0F;
  switch (format.code) {
    case Code::float16: return from_float16(static_cast<std::uint16_t>(code));
    case Code::bfloat16: return from_bfloat16(static_cast<std::uint16_t>(code));
    case Code::e4m3: return from_float8_e4m3(static_cast<std::uint8_t>(code)) * scale;
    case Code::e5m2: return from_float8_e5m2(static_cast<std::uint8_t>(code)) * scale;
    case Code::nearest:
    case Code::random:
      return static_cast<float>(static_cast<std::int32_t>(code << (32 - format.bits)) >> (32 - format.bits)) * scale;
    case Code::ternary: return (code & 1) == 0 ? 0 : sign * scale;
    case Code::sign: return sign * scale;
  }
  return 0;
}

}  // namespace

std::vector<std::byte> encode(std::string_view codec, const std::vector<float>& x, std::uint64_t seed) {
  const Format& format = format_of(codec);
  BitWriter out;
  for (std::size_t begin = 0, index = 0; begin < x.size(); begin += format.block, ++index) {
    const std::span block(x.data() + begin, std::min(format.block, x.size() - begin));
    const bool whole =
        format.scale == Scale::none || std::all_of(block.begin(), block.end(), [](float v) { return std::isfinite(v); });
    const float scale = format.scale == Scale::none ? 1 : scale_of(format, block);
    const auto bits = std::bit_cast<std::uint32_t>(scale);
    out.put(format.scale_bits() == 16 ? bits >> 16 : bits, format.scale_bits());
    const std::size_t padded = (block.size() * format.bits + 7) / 8 * 8 / format.bits;
    for (std::size_t i = 0; i < padded; ++i) {
      const bool inside = i < block.size();
      const float drawn = format.code == Code::random || format.code == Code::ternary ? draw(seed, index, i) : 0;
      if (whole)
        out.put(code_of(format, inside ? block[i] : 0, scale, drawn), format.bits);
      else
        out.put(format.code == Code::ternary ? 1 : 0, format.bits);
    }
    out.end_block();
  }
  return out.take();
}

std::vector<float> decode(std::string_view codec, const std::vector<std::byte>& wire, std::size_t n) {
  const Format& format = format_of(codec);
  std::vector<float> x(n);
  BitReader in(wire);
  float scale = 1;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % format.block == 0) {
      in.end_block();
      const std::uint32_t bits = in.get(format.scale_bits());
      if (format.scale != Scale::none) scale = std::bit_cast<float>(format.scale_bits() == 16 ? bits << 16 : bits);
    }
    x[i] = value_of(format, in.get(format.bits), scale);
  }
  return x;
}

}  // namespace reference
