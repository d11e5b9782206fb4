// SPDX-License-Identifier: Apache-2.0
// What every codec promises: sizes, round trips, bounds, special values.
#include "compress/codecs/codec.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace shoal::compress;

namespace {

constexpr std::size_t kLengths[] = {0,   1,   7,   8,    9,    31,   32,   33,   127,  128, 129,
                                    511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4097};
constexpr std::size_t kGuard = 64;  // [bytes]

// Memory at an awkward address, with guards around it.
template <class T>
class Guarded {
 public:
  Guarded(std::size_t n, std::size_t offset, std::byte fill)
      : fill_(fill), offset_(kGuard + offset * (sizeof(T) == 1 ? 1 : sizeof(T))), bytes_(n * sizeof(T)) {
    memory_.assign(offset_ + bytes_ + kGuard, fill);
  }
  T* data() { return reinterpret_cast<T*>(memory_.data() + offset_); }
  bool intact() const {
    const auto is_fill = [this](std::byte b) { return b == fill_; };
    return std::all_of(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(offset_), is_fill) &&
           std::all_of(memory_.end() - static_cast<std::ptrdiff_t>(kGuard), memory_.end(), is_fill);
  }

 private:
  std::byte fill_;
  std::size_t offset_, bytes_;
  std::vector<std::byte> memory_;
};

enum class Kind { normal, uniform, heavy_tailed, tiny, subnormal, huge };
constexpr Kind kKinds[] = {Kind::normal, Kind::uniform, Kind::heavy_tailed, Kind::tiny, Kind::subnormal, Kind::huge};

std::vector<float> make_input(Kind kind, std::size_t n, unsigned seed, float largest) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> x(n);
  for (float& each : x) {
    switch (kind) {
      case Kind::normal: each = normal(engine); break;
      case Kind::uniform: each = uniform(engine); break;
      case Kind::heavy_tailed: each = std::copysign(std::exp(4 * normal(engine)), uniform(engine)); break;
      case Kind::tiny: each = 1e-7F * normal(engine); break;
      case Kind::subnormal: each = 0x1p-130F * normal(engine); break;
      case Kind::huge: each = largest * uniform(engine); break;
    }
    each = std::clamp(each, -largest, largest);
  }
  return x;
}

std::vector<std::byte> encoded(const Codec& codec, const std::vector<float>& x, std::uint64_t seed = 1) {
  std::vector<std::byte> wire(codec.wire_bytes(x.size()));
  codec.encode(x.data(), x.size(), wire.data(), seed);
  return wire;
}

std::vector<float> decoded(const Codec& codec, const std::vector<std::byte>& wire, std::size_t n) {
  std::vector<float> x(n);
  codec.decode(wire.data(), n, x.data());
  return x;
}

std::vector<float> round_trip(const Codec& codec, const std::vector<float>& x, std::uint64_t seed = 1) {
  return decoded(codec, encoded(codec, x, seed), x.size());
}

std::size_t block_of(const Codec& codec, std::size_t n) { return codec.block == 0 ? std::max<std::size_t>(n, 1) : codec.block; }

// Calls look(begin, end, max|x|) for every block.
template <class Look>
void for_each_block(const Codec& codec, const std::vector<float>& x, Look look) {
  for (std::size_t begin = 0; begin < x.size(); begin += block_of(codec, x.size())) {
    const std::size_t end = std::min(x.size(), begin + block_of(codec, x.size()));
    float largest = 0;
    for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(x[i]));
    look(begin, end, static_cast<double>(largest));
  }
}

// The largest error, in units of the bound.
double worst_error(const Codec& codec, const std::vector<float>& x, const std::vector<float>& y) {
  double worst = 0;
  for_each_block(codec, x, [&](std::size_t begin, std::size_t end, double largest) {
    for (std::size_t i = begin; i < end; ++i) {
      const double meant = x[i], error = std::abs(static_cast<double>(y[i]) - meant);
      const double bound = codec.bound.relative * std::abs(meant) + codec.bound.of_block * largest + codec.bound.absolute;
      if (error != 0) worst = std::max(worst, std::isnan(error) ? HUGE_VAL : error / bound);
    }
  });
  return worst;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace

TEST_CASE("Every codec has a name of its own, by which it is found, and a description") {
  std::set<std::string_view> names;
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    REQUIRE(names.insert(codec.name).second);
    REQUIRE(find_codec(codec.name)->encode == codec.encode);
    REQUIRE(codec.about != "");
    REQUIRE_FALSE((codec.stochastic && codec.idempotent));
  }
  REQUIRE(find_codec("int9") == nullptr);
  REQUIRE(find_codec("") == nullptr);
}

TEST_CASE("Encoded vectors have the documented sizes to the byte") {
  const auto up = [](std::size_t a, std::size_t b) { return (a + b - 1) / b; };
  const std::map<std::string_view, std::function<std::size_t(std::size_t)>> formulas = {
      {"fp16", [](std::size_t n) { return 2 * n; }},
      {"bf16", [](std::size_t n) { return 2 * n; }},
      {"fp8_e4m3", [&](std::size_t n) { return n + 2 * up(n, 128); }},
      {"fp8_e5m2", [&](std::size_t n) { return n + 2 * up(n, 128); }},
      {"int8", [&](std::size_t n) { return n + 2 * up(n, 128); }},
      {"int4", [&](std::size_t n) { return up(n, 2) + 2 * up(n, 32); }},
      {"int8_stochastic", [&](std::size_t n) { return n + 2 * up(n, 128); }},
      {"int4_stochastic", [&](std::size_t n) { return up(n, 2) + 2 * up(n, 32); }},
      {"qsgd", [&](std::size_t n) { return n + 4 * up(n, 512); }},
      {"qsgd4", [&](std::size_t n) { return up(n, 2) + 4 * up(n, 512); }},
      {"ternary", [&](std::size_t n) { return up(n, 4) + 4 * up(n, 2048); }},
      {"sign", [&](std::size_t n) { return up(n, 8) + 4 * up(n, 1024); }}};
  REQUIRE(formulas.size() == codecs().size());
  for (const Codec& codec : codecs()) {
    for (std::size_t n = 0; n <= 5000; ++n) {
      CAPTURE(codec.name, n);
      REQUIRE(codec.wire_bytes(n) == formulas.at(codec.name)(n));
    }
    REQUIRE(codec.wire_bytes(std::size_t{1} << 40) == formulas.at(codec.name)(std::size_t{1} << 40));
  }
}

TEST_CASE(
    "Every codec at awkward lengths and addresses writes all of its bytes and nothing else, and comes back within its bound") {
  for (const Codec& codec : codecs()) {
    for (const std::size_t n : kLengths) {
      for (const std::size_t offset : {0, 1, 3}) {
        CAPTURE(codec.name, n, offset);
        const std::vector<float> x = make_input(Kind::normal, n, 5, codec.largest);
        Guarded<float> in(n, offset, std::byte{0x33});
        if (n > 0) std::memcpy(in.data(), x.data(), n * sizeof(float));
        const std::size_t bytes = codec.wire_bytes(n);
        Guarded<std::byte> wire(bytes, offset, std::byte{0xA5}), again(bytes, offset, std::byte{0x5A});
        codec.encode(in.data(), n, wire.data(), 9);
        codec.encode(in.data(), n, again.data(), 9);
        REQUIRE(wire.intact());
        REQUIRE(again.intact());
        REQUIRE(std::equal(wire.data(), wire.data() + bytes, again.data()));

        Guarded<float> out(n, offset, std::byte{0xA5}), sum(n, offset, std::byte{0x5A});
        codec.decode(wire.data(), n, out.data());
        REQUIRE(out.intact());
        REQUIRE(worst_error(codec, x, std::vector<float>(out.data(), out.data() + n)) <= 1);

        std::vector<float> expected(n);
        for (std::size_t i = 0; i < n; ++i) {
          sum.data()[i] = std::sqrt(static_cast<float>(i));
          expected[i] = sum.data()[i] + out.data()[i];
        }
        codec.decode_add(wire.data(), n, sum.data());
        REQUIRE(sum.intact());
        REQUIRE(same_bits(std::vector<float>(sum.data(), sum.data() + n), expected));
      }
    }
  }
}

TEST_CASE("Every codec takes a million and three elements") {
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    const std::vector<float> x = make_input(Kind::heavy_tailed, 1'000'003, 6, codec.largest);
    const std::vector<float> y = round_trip(codec, x);
    REQUIRE(worst_error(codec, x, y) <= 1);
    // A part that begins with a block is encoded alike: a block's place only matters to what is drawn.
    const std::vector<float> tail(x.end() - (1'000'003 % 2048), x.end());
    if (!codec.stochastic) REQUIRE(same_bits(round_trip(codec, tail), {y.end() - (1'000'003 % 2048), y.end()}));
  }
}

TEST_CASE("Every codec keeps its bound whatever the distribution, and no deterministic bound is twice what is needed") {
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    double worst = 0;
    for (const Kind kind : kKinds) {
      for (unsigned seed = 1; seed <= 20; ++seed) {
        CAPTURE(static_cast<int>(kind), seed);
        const std::vector<float> x = make_input(kind, 4097, seed, codec.largest);
        const double error = worst_error(codec, x, round_trip(codec, x, seed));
        REQUIRE(error <= 1);
        worst = std::max(worst, error);
      }
    }
    REQUIRE(worst >= (codec.stochastic ? 0.4 : 1 / 2.1));
  }
}

TEST_CASE("Zeros decode to zeros, after a block of anything") {
  for (const Codec& codec : codecs()) {
    for (const std::size_t n : kLengths) {
      CAPTURE(codec.name, n);
      REQUIRE(same_bits(round_trip(codec, std::vector<float>(n)), std::vector<float>(n)));
    }
    std::vector<float> x(codec.block + 100, 1.0F);
    std::fill(x.begin() + static_cast<std::ptrdiff_t>(codec.block), x.end(), 0.0F);
    const std::vector<float> y = round_trip(codec, x);
    REQUIRE(std::all_of(y.begin() + static_cast<std::ptrdiff_t>(codec.block), y.end(), [](float v) { return v == 0; }));
  }
}

TEST_CASE("Constants stay within the bound, at every magnitude of the range") {
  for (const Codec& codec : codecs()) {
    for (int exponent = -149; exponent <= 127; ++exponent) {
      for (const float mantissa : {1.0F, 1.3F, -1.7F}) {
        const float value = std::ldexp(mantissa, exponent);
        if (std::abs(value) > codec.largest) continue;
        CAPTURE(codec.name, value);
        const std::vector<float> x(300, value);
        const std::vector<float> y = round_trip(codec, x);
        REQUIRE(worst_error(codec, x, y) <= 1);
        // These keep a block's only magnitude as it is.
        if (codec.name == "sign" || (codec.name == "ternary" && std::abs(value) >= 0x1p-126F)) REQUIRE(same_bits(x, y));
      }
    }
  }
}

TEST_CASE(
    "A zero, a subnormal and a constant block come back beside blocks with an infinity or a NaN, which never becomes a number") {
  const float inf = std::numeric_limits<float>::infinity();
  const float spoils[] = {inf, -inf, std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0x7F800001U),
                          std::bit_cast<float>(0xFFFFFFFFU)};
  for (const Codec& codec : codecs()) {
    const std::size_t block = codec.block;
    std::vector<float> x;
    const std::vector<float> normal = make_input(Kind::normal, 2 * block + 5, 8, codec.largest);
    const std::vector<float> subnormal = make_input(Kind::subnormal, block, 8, codec.largest);
    x.insert(x.end(), block, 0.0F);
    x.insert(x.end(), subnormal.begin(), subnormal.end());
    x.insert(x.end(), block, -2.5F);
    x.insert(x.end(), normal.begin(), normal.end());
    const std::vector<float> clean = round_trip(codec, x);
    REQUIRE(worst_error(codec, x, clean) <= 1);
    for (const float spoil : spoils) {
      for (const std::size_t at :
           {std::size_t{0}, block - 1, block, 2 * block + block / 2, 3 * block, 5 * block, 5 * block + 4}) {
        CAPTURE(codec.name, spoil, at);
        std::vector<float> spoilt = x;
        spoilt[at] = spoil;
        std::vector<float> y = round_trip(codec, spoilt);
        REQUIRE_FALSE(std::isfinite(y[at]));
        if (block == 1) REQUIRE((std::isnan(spoil) ? std::isnan(y[at]) : y[at] == spoil));
        const std::size_t begin = at / block * block, end = std::min(x.size(), begin + block);
        std::copy(clean.begin() + static_cast<std::ptrdiff_t>(begin), clean.begin() + static_cast<std::ptrdiff_t>(end),
                  y.begin() + static_cast<std::ptrdiff_t>(begin));
        REQUIRE(same_bits(y, clean));
      }
    }
  }
}

TEST_CASE("What an idempotent codec decodes encodes to the same bytes") {
  for (const Codec& codec : codecs()) {
    if (!codec.idempotent) continue;
    for (const Kind kind : kKinds) {
      for (unsigned seed = 1; seed <= 20; ++seed) {
        CAPTURE(codec.name, static_cast<int>(kind), seed);
        const std::vector<float> x = make_input(kind, 4097, seed, codec.largest);
        const std::vector<std::byte> wire = encoded(codec, x);
        REQUIRE(encoded(codec, decoded(codec, wire, x.size())) == wire);
      }
    }
    // Blocks whose largest elements have every mantissa of 12 bits, so that scales fall everywhere between two bfloat16s.
    std::vector<float> x;
    for (int mantissa = 0; mantissa < 4096; ++mantissa) {
      const std::vector<float> block = make_input(Kind::uniform, codec.block, static_cast<unsigned>(mantissa), 1);
      x.insert(x.end(), block.begin(), block.end());
      x.back() = 1 + static_cast<float>(mantissa) / 4096;
    }
    const std::vector<std::byte> wire = encoded(codec, x);
    REQUIRE(encoded(codec, decoded(codec, wire, x.size())) == wire);
  }
}

TEST_CASE("fp16 overflows to infinity above 65504, not below, and keeps subnormals") {
  const Codec& codec = *find_codec("fp16");
  const float inf = std::numeric_limits<float>::infinity();
  REQUIRE(round_trip(codec, {65504, 65519, 65520, -65520, 1e30F}) == std::vector<float>{65504, 65504, inf, -inf, inf});
  REQUIRE(round_trip(codec, {30000, 0x1p-24F, 0x1.8p-25F, 0x1p-25F, -0x1.8p-24F}) ==
          std::vector<float>{30000, 0x1p-24F, 0x1p-24F, 0, -0x1p-23F});
}

TEST_CASE("Signs: the scale is the mean magnitude of a block, and zero is positive") {
  const Codec& codec = *find_codec("sign");
  REQUIRE(round_trip(codec, {1, -2, 3, -6}) == std::vector<float>{3, -3, 3, -3});
  REQUIRE(round_trip(codec, {0, -0.0F, -4, 4}) == std::vector<float>{2, 2, -2, 2});
  // Many large elements: their sum is no float32.
  REQUIRE(round_trip(codec, std::vector<float>(1024, 3e38F)) == std::vector<float>(1024, 3e38F));
  // The short block has a mean of its own.
  std::vector<float> x(1026, -1.0F);
  x[1024] = 5;
  const std::vector<float> y = round_trip(codec, x);
  REQUIRE(y[1023] == -1);
  REQUIRE(y[1024] == 3);
  REQUIRE(y[1025] == -3);
}
