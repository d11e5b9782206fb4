// SPDX-License-Identifier: Apache-2.0
// Codecs: float32 vectors as fewer bytes. Pure functions: any thread, no state, no allocation. The wire is bytes without
// alignment, little endian, without a header: both sides know codec and length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace shoal::compress {

// How far a decoded value may be from what was encoded, while all values of its block are finite and within the codec's range:
//   |x' - x| <= relative * |x| + of_block * max|block| + absolute
// Stochastic codecs hold it too, for every draw.
struct ErrorBound {
  double relative = 0;
  double of_block = 0;
  double absolute = 0;
};

struct Codec {
  std::string_view name;     // "int8": as users write it
  std::string_view about;    // one line
  std::size_t block = 1;     // elements that share a scale, from the first one on; the last block may be short. 1: none do.
                             // 0: all elements of an encoded vector do
  bool stochastic = false;   // rounds at random, so that the expected value of what is decoded is what was encoded
  bool idempotent = false;   // what is decoded encodes to the same bytes, so that a value may be passed on encoded anew
  float largest = 0x1p125F;  // the range: finite elements up to this magnitude decode to finite ones, within the bound
  ErrorBound bound;
  // Bytes of n encoded elements, exactly: what encode writes and decode reads.
  std::size_t (*wire_bytes)(std::size_t n);
  // `seed`: stochastic codecs draw for element i from (seed, i) alone; others ignore it.
  // A block with a NaN or an infinity decodes to values of which at least these are not finite; other blocks are not touched by
  // it.
  void (*encode)(const float* in, std::size_t n, std::byte* wire, std::uint64_t seed);
  // out[i] = decoded; the same bits on every machine.
  void (*decode)(const std::byte* wire, std::size_t n, float* out);
  // sum[i] += decoded: bit for bit decode followed by an addition in float32.
  void (*decode_add)(const std::byte* wire, std::size_t n, float* sum);
};

// All codecs, in the order of the table.
std::span<const Codec> codecs();
// Null if there is none of this name.
const Codec* find_codec(std::string_view name);

}  // namespace shoal::compress
