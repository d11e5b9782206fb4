// SPDX-License-Identifier: Apache-2.0
// Sums of floats that do not depend on the order, nor on how many ranks take part: the true sum, rounded once (to nearest, ties
// to even). Pure functions: any thread, no state, no allocation. Elements need no alignment, digits that of their type.
//
// A float is an integer times the smallest subnormal of its type. An element becomes a row of signed digits of that integer, to
// base 2^32, in 64-bit words. Rows add word by word without carries, for up to 2^31 - 1 ranks, and integer addition has no
// order: any all-reduce or reduce-scatter of int64 sums them. Carries and rounding come once, at the end. float32 values 5 and
// -2^-140 (the unit is 2^-149):
//
//   digit       4                  3   2   1     0
//    5          5 * 2^21           .   .   .     .
//   -2^-140     .                  .   .   .   -2^9        digits that no rank needs, below or above, do not travel
//
// Who uses it: scan the input; agree with all ranks on the needs; encode; sum the rows; decode. Rows lie one after another, an
// element's digits side by side, lowest first, so that a rank's chunk of elements is a chunk of words, too.
//
// Results: a sum of zero is +0, even if all contributions are -0. NaN, or infinities of both signs, give the type's plain quiet
// NaN; else an infinity gives itself. What exceeds the range becomes infinity, or the largest finite value in the float8 types,
// as in reduce.h. Integer types have no rows: their sums wrap, and are exact as they are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/types.h"

namespace shoal::device {

inline constexpr int kExactDigits = 66;  // float64's 2098 bits; float32 and bfloat16 have 9 digits, float16 2, float8 1

// What rows must be able to hold: all three fields are joined by their maximum, so that ranks agree by a max all-reduce of the
// struct as it is, three int32. As made: nothing but zeros.
struct ExactNeeds {
  std::int32_t highest = -1;                  // digit
  std::int32_t minus_lowest = -kExactDigits;  // the lowest digit, negated
  std::int32_t nonfinite = 0;                 // 1: there are infinities or NaN
  friend constexpr bool operator==(const ExactNeeds&, const ExactNeeds&) = default;
};

// The digits that travel. A wider window gives the same results.
struct ExactWindow {
  int lowest = 0;         // digit
  int digits = 0;         // 0: all elements are zero
  bool specials = false;  // one word more, after the digits: how many +infinities (low half) and -infinities; a NaN is both
  constexpr std::size_t words() const { return static_cast<std::size_t>(digits) + (specials ? 1 : 0); }  // a row
  friend constexpr bool operator==(const ExactWindow&, const ExactWindow&) = default;
};

// `factor`: for premul_sum, one element of `type`, this rank's factor; null for other operations. Products are rounded to the
// element type, bit for bit as kernels(type, premul_sum).load_input does, and then summed exactly.
ExactNeeds scan(DataType type, const void* in, std::size_t n, const void* factor = nullptr);

ExactWindow window_for(const ExactNeeds& agreed);

// Writes n * window.words() words. False if an element does not fit into the window: the input changed since it was scanned;
// the rows are then wrong, though within their bounds.
[[nodiscard]] bool encode(DataType type, const void* in, std::size_t n, ExactWindow window, std::int64_t* digits,
                          const void* factor = nullptr);

// Writes n elements. divisor: 1 for a sum; the world for an average, which is the true sum over the world, rounded once (a
// negative quotient below the smallest subnormal may become -0).
void decode(DataType type, const std::int64_t* digits, std::size_t n, ExactWindow window, std::uint32_t divisor, void* out);

}  // namespace shoal::device
