// SPDX-License-Identifier: Apache-2.0
// IEEE 754 half precision: 11 bits of mantissa; what exceeds 65504 becomes infinity.
#include <cstring>

#include "compress/codecs/codec.h"
#include "device/convert.h"

namespace shoal::compress {
namespace {

std::size_t wire_bytes(std::size_t n) { return 2 * n; }

void encode(const float* in, std::size_t n, std::byte* wire, std::uint64_t /*seed*/) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint16_t bits = device::to_float16(in[i]);
    std::memcpy(wire + 2 * i, &bits, 2);
  }
}

float at(const std::byte* wire, std::size_t i) {
  std::uint16_t bits;
  std::memcpy(&bits, wire + 2 * i, 2);
  return device::from_float16(bits);
}

void decode(const std::byte* wire, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = at(wire, i);
}

void decode_add(const std::byte* wire, std::size_t n, float* sum) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += at(wire, i);
}

}  // namespace

extern const Codec float16_codec;
const Codec float16_codec{.name = "fp16",
                          .about = "IEEE half precision, 2 bytes an element",
                          .idempotent = true,
                          .bound = {.relative = 0x1p-11, .absolute = 0x1p-25},
                          .wire_bytes = wire_bytes,
                          .encode = encode,
                          .decode = decode,
                          .decode_add = decode_add};

}  // namespace shoal::compress
