// SPDX-License-Identifier: Apache-2.0
// The codecs' kernels of every instruction set against the scalar reference, bit for bit.
#include <fmt/format.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "compress/codec_reference.h"
#include "compress/codecs/codec.h"
#include "device/instruction_sets.h"

using namespace shoal::compress;

namespace {

constexpr std::size_t kLengths[] = {0, 1, 7, 31, 32, 33, 127, 129, 513, 1025, 2049, 4097};

// Pieces of 32 elements of all magnitudes: normal, subnormal, nearly too large, zeros of both signs, all alike, and multiples of
// half a power of two, among which many fall into the middle between two codes. A few pieces have an infinity or a NaN.
std::vector<float> make_input(std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (std::size_t begin = 0; begin < n; begin += 32) {
    const unsigned kind = engine() % 8;
    const float factor = std::ldexp(1.0F, static_cast<int>(engine() % 60) - 30);
    for (std::size_t i = begin; i < std::min(n, begin + 32); ++i) {
      switch (kind) {
        case 0: x[i] = normal(engine) * 0x1p-135F; break;
        case 1: x[i] = std::max(-0x1p125F, std::min(0x1p125F, normal(engine) * 0x1p124F)); break;
        case 2: x[i] = engine() % 2 == 0 ? 0.0F : -0.0F; break;
        case 3: x[i] = factor; break;
        case 4: x[i] = (static_cast<float>(engine() % 509) - 254) * 0.5F * factor; break;
        default: x[i] = normal(engine) * factor; break;
      }
    }
    if (engine() % 16 == 0) {
      const std::uint32_t bits[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFABCDEF};
      x[begin + engine() % std::min<std::size_t>(32, n - begin)] = std::bit_cast<float>(bits[engine() % 5]);
    }
  }
  return x;
}

std::string first_difference(const std::vector<std::byte>& got, const std::vector<std::byte>& wanted) {
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != wanted[i])
      return fmt::format("byte {}: {:#x}, not {:#x}", i, static_cast<unsigned>(got[i]), static_cast<unsigned>(wanted[i]));
  return "";
}

// NaNs are equal.
std::string first_difference(const std::vector<float>& got, const std::vector<float>& wanted) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(wanted[i])) continue;
    if (std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(wanted[i]))
      return fmt::format("element {}: {:a}, not {:a}", i, got[i], wanted[i]);
  }
  return "";
}

}  // namespace

TEST_CASE("On every instruction set, encoding writes and decoding reads what the scalar reference does, bit for bit") {
  int sets = 0;
  shoal::device::for_each_instruction_set([&] {
    ++sets;
    for (const Codec& codec : codecs()) {
      for (const std::size_t n : kLengths) {
        for (unsigned seed = 1; seed <= 4; ++seed) {
          CAPTURE(codec.name, n, seed, sets);
          const std::vector<float> x = make_input(n, seed * 100 + static_cast<unsigned>(n));
          const std::vector<std::byte> wanted = reference::encode(codec.name, x, seed);
          REQUIRE(codec.wire_bytes(n) == wanted.size());
          std::vector<std::byte> wire(wanted.size());
          codec.encode(x.data(), n, wire.data(), seed);
          REQUIRE(first_difference(wire, wanted) == "");
          std::vector<float> decoded(n);
          codec.decode(wire.data(), n, decoded.data());
          REQUIRE(first_difference(decoded, reference::decode(codec.name, wire, n)) == "");
        }
      }
    }
  });
  REQUIRE(sets >= 1);
}

TEST_CASE("Half floats round every kind of float32 as the scalar conversions do") {
  for (const char* name : {"fp16", "bf16"}) {
    const Codec& codec = *find_codec(name);
    std::mt19937 engine(3);
    std::vector<float> x(1 << 18);
    for (float& each : x) each = std::bit_cast<float>(static_cast<std::uint32_t>(engine()));
    shoal::device::for_each_instruction_set([&] {
      std::vector<std::byte> wire(codec.wire_bytes(x.size()));
      codec.encode(x.data(), x.size(), wire.data(), 0);
      REQUIRE(first_difference(wire, reference::encode(name, x, 0)) == "");
    });
  }
}

TEST_CASE("8-bit floats have the value of every code, and round every float that is near one as the scalar conversions do") {
  for (const char* name : {"fp8_e4m3", "fp8_e5m2"}) {
    const Codec& codec = *find_codec(name);
    const float largest = name == std::string("fp8_e4m3") ? 448 : 57344;
    // Blocks that begin with the largest value have a scale of 1.
    std::vector<float> x;
    std::mt19937 engine(4);
    for (int i = 0; i < 1 << 17; ++i) {
      const float any = std::ldexp(1 + static_cast<float>(engine() % 4096) / 4096, static_cast<int>(engine() % 30) - 20);
      x.push_back(i % 128 == 0 ? largest : std::min(any, largest) * (engine() % 2 == 0 ? 1.0F : -1.0F));
    }
    shoal::device::for_each_instruction_set([&] {
      std::vector<std::byte> wire(codec.wire_bytes(x.size()));
      codec.encode(x.data(), x.size(), wire.data(), 0);
      REQUIRE(first_difference(wire, reference::encode(name, x, 0)) == "");
      std::vector<float> decoded(x.size());
      codec.decode(wire.data(), x.size(), decoded.data());
      REQUIRE(first_difference(decoded, reference::decode(name, wire, x.size())) == "");
    });
  }
}

TEST_CASE("No scale is too small for its block where rounding may go up: elements just above what a bfloat16 scale reaches") {
  for (const char* name : {"int8_stochastic", "int4_stochastic"}) {
    const float levels = name == std::string("int8_stochastic") ? 127 : 7;
    for (int mantissa = 128; mantissa < 256; ++mantissa) {
      const float reached = static_cast<float>(mantissa) * levels;
      for (const float x : {reached, std::nextafter(reached, 0.0F), std::nextafter(reached, HUGE_VALF)}) {
        CAPTURE(name, x);
        std::vector<std::byte> wire(find_codec(name)->wire_bytes(1));
        find_codec(name)->encode(&x, 1, wire.data(), 1);
        REQUIRE(wire == reference::encode(name, {x}, 1));
        std::uint16_t bits = 0;
        std::memcpy(&bits, wire.data(), 2);
        REQUIRE(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16) * levels >= x);
      }
    }
  }
}
