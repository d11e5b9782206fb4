// SPDX-License-Identifier: Apache-2.0
// Plain scalar code: rows are six times as large as float32 elements at three digits, so memory and wire set the pace. The usual
// numbers of digits have loops of their own, unrolled and without branches that depend on the data.
#include "device/exact.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/expects.h"
#include "device/reduce.h"

namespace shoal::device {
namespace {

// Bit patterns are magnitudes, without the sign. Specials are the patterns from kSpecial on. The bias of the exponents plays no
// part: everything is in units.
template <class T, int mantissa, T special, T infinity, T nan, T overflow>
struct Format {
  using Bits = T;
  static constexpr int kMantissa = mantissa;  // stored bits
  static constexpr T kSign = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
  static constexpr T kSpecial = special;
  static constexpr T kInfinity = infinity;
  static constexpr T kNan = nan;
  static constexpr T kOverflow = overflow;                                              // what too large results become
  static constexpr int kBits = static_cast<int>((special - 1) >> mantissa) + mantissa;  // of the largest value, in units
  static constexpr int kDigits = (kBits + 31) / 32;
  static constexpr int kPieces = std::min(kDigits, (mantissa + 1 + 31 + 31) / 32);  // digits that one element can touch
};

using Float16 = Format<std::uint16_t, 10, 0x7C00, 0x7C00, 0x7E00, 0x7C00>;
using Bfloat16 = Format<std::uint16_t, 7, 0x7F80, 0x7F80, 0x7FC0, 0x7F80>;
using Float32 = Format<std::uint32_t, 23, 0x7F800000, 0x7F800000, 0x7FC00000, 0x7F800000>;
using Float64 = Format<std::uint64_t, 52, 0x7FF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000, 0x7FF0000000000000>;
using Float8E4M3 = Format<std::uint8_t, 3, 0x7F, 0xFF, 0x7F, 0x7E>;  // has no infinity: no magnitude is 0xFF
using Float8E5M2 = Format<std::uint8_t, 2, 0x7C, 0x7C, 0x7E, 0x7B>;
static_assert(Float64::kDigits == kExactDigits);

template <class Body>
auto with_format(DataType type, Body body) {
  switch (type) {
    case DataType::float16: return body(Float16());
    case DataType::bfloat16: return body(Bfloat16());
    case DataType::float32: return body(Float32());
    case DataType::float64: return body(Float64());
    case DataType::float8_e4m3: return body(Float8E4M3());
    case DataType::float8_e5m2: return body(Float8E5M2());
    case DataType::int8:
    case DataType::uint8:
    case DataType::int32:
    case DataType::uint32:
    case DataType::int64:
    case DataType::uint64: break;
  }
  expects(false, "exact sums: integers need no rows");
  return body(Float64());
}

// body(Digits<k>): k as a constant where it is a usual one for the format, else 0.
template <int k>
struct Digits {
  static constexpr int kValue = k;
};

template <class F, int k = std::min(F::kDigits, 5), class Body>
auto with_digits(int digits, Body body) {
  if constexpr (k > 0)
    return digits == k ? body(Digits<k>()) : with_digits<F, k - 1>(digits, body);
  else
    return body(Digits<0>());
}

// A finite magnitude is mantissa * 2^shift units.
struct Scaled {
  std::uint64_t mantissa;
  int shift;
};

template <class F>
Scaled scaled(typename F::Bits magnitude) {
  const auto exponent = static_cast<int>(magnitude >> F::kMantissa);
  const std::uint64_t normal = exponent != 0 ? 1 : 0;
  const std::uint64_t fraction = magnitude & ((std::uint64_t{1} << F::kMantissa) - 1);
  return {fraction | (normal << F::kMantissa), exponent - static_cast<int>(normal)};
}

template <class F>
typename F::Bits read(const std::byte* in, std::size_t index) {
  typename F::Bits bits;
  std::memcpy(&bits, in + index * sizeof bits, sizeof bits);
  return bits;
}

// Passes the elements on as they are, or block by block, multiplied: body(elements, their index, their number).
template <class Body>
void for_blocks(DataType type, const void* in, std::size_t n, const void* factor, Body body) {
  const auto* const bytes = static_cast<const std::byte*>(in);
  if (factor == nullptr) return body(bytes, std::size_t{0}, n);
  const Scale scale = make_scale(type, ReduceOp::premul_sum, World{1}, factor);
  const MapFn multiply = kernels(type, ReduceOp::premul_sum).load_input;
  alignas(64) std::byte block[4096];
  const std::size_t most = sizeof block / element_bytes(type);
  for (std::size_t first = 0; first < n; first += most) {
    const std::size_t count = std::min(most, n - first);
    multiply({.out = block}, bytes + first * element_bytes(type), count, scale);
    body(block, first, count);
  }
}

void check(DataType type, ExactWindow window) {
  const int most = with_format(type, [](auto format) { return decltype(format)::kDigits; });
  expects(window.lowest >= 0 && window.digits >= 0 && window.lowest + window.digits <= most,
          "exact sums: no window of this type");
}

template <class F>
void scan_elements(const std::byte* in, std::size_t n, ExactNeeds& needs) {
  constexpr int kNone = 32 * kExactDigits;
  typename F::Bits largest = 0;
  int lowest = kNone;  // bit
  bool nonfinite = false;
  for (std::size_t i = 0; i < n; ++i) {
    const auto magnitude = static_cast<typename F::Bits>(read<F>(in, i) & ~F::kSign);
    const bool special = magnitude >= F::kSpecial;
    nonfinite |= special;
    largest = std::max(largest, special ? typename F::Bits{0} : magnitude);
    const Scaled s = scaled<F>(magnitude);
    const int last = s.shift + std::countr_zero(s.mantissa | (std::uint64_t{1} << 63));
    lowest = std::min(lowest, special || magnitude == 0 ? kNone : last);
  }
  needs.nonfinite |= nonfinite ? 1 : 0;
  if (largest == 0) return;
  const Scaled s = scaled<F>(largest);
  needs.highest = std::max(needs.highest, (s.shift + static_cast<int>(std::bit_width(s.mantissa)) - 1) / 32);
  needs.minus_lowest = std::max(needs.minus_lowest, -(lowest / 32));
}

// An element's digits: piece[0] belongs to digit first, the next to the digit above it.
template <class F>
struct Pieces {
  explicit Pieces(Scaled s) : first(s.shift / 32) {
    const int shift = s.shift % 32;
    const std::uint64_t low = (s.mantissa & 0xFFFFFFFF) << shift;
    const std::uint64_t high = ((s.mantissa >> 32) << shift) + (low >> 32);
    piece[0] = low & 0xFFFFFFFF;
    if constexpr (F::kPieces > 1) piece[1] = high & 0xFFFFFFFF;
    if constexpr (F::kPieces > 2) piece[2] = high >> 32;
  }
  int first;
  std::uint64_t piece[F::kPieces];
};

// Digits without an own place in the row are left out; false if one of them is not zero.
template <class F, int kDigits>
bool write_digits(const Pieces<F>& p, ExactWindow window, std::uint64_t negative, std::int64_t* row) {
  const auto digits = static_cast<unsigned>(kDigits != 0 ? kDigits : window.digits);
  const auto first = static_cast<unsigned>(p.first - window.lowest);  // wraps below the window: beyond its end as well
  const std::uint64_t flip = 0 - negative;
  std::uint64_t lost = 0;
  for (unsigned j = 0; j < F::kPieces; ++j) lost |= first + j < digits ? 0 : p.piece[j];
  if constexpr (kDigits != 0) {
    for (unsigned d = 0; d < digits; ++d) {
      std::uint64_t word = 0;
      for (unsigned j = 0; j < F::kPieces; ++j) word |= first + j == d ? p.piece[j] : 0;
      row[d] = static_cast<std::int64_t>((word ^ flip) - flip);
    }
  } else {
    std::fill(row, row + digits, 0);
    for (unsigned j = 0; j < F::kPieces; ++j)
      if (first + j < digits) row[first + j] = static_cast<std::int64_t>((p.piece[j] ^ flip) - flip);
  }
  return lost == 0;
}

constexpr std::int64_t kPositiveInfinity = 1;
constexpr std::int64_t kNegativeInfinity = std::int64_t{1} << 32;

template <class F, int kDigits>
bool encode_elements(const std::byte* in, std::size_t n, ExactWindow window, std::int64_t* row) {
  bool fits = true;
  for (std::size_t i = 0; i < n; ++i, row += window.words()) {
    const auto bits = read<F>(in, i);
    auto magnitude = static_cast<typename F::Bits>(bits & ~F::kSign);
    const bool negative = (bits & F::kSign) != 0;
    std::int64_t special = 0;
    if (magnitude >= F::kSpecial) [[unlikely]] {
      const bool nan = magnitude != F::kInfinity;
      special = nan ? kPositiveInfinity + kNegativeInfinity : negative ? kNegativeInfinity : kPositiveInfinity;
      fits &= window.specials;
      magnitude = 0;
    }
    fits &= write_digits<F, kDigits>(Pieces<F>(scaled<F>(magnitude)), window, negative ? 1 : 0, row);
    if (window.specials) row[window.digits] = special;
  }
  return fits;
}

// The absolute value of a finished row, in units: 2^(top - 63) * bits, and 2^(top - 127) * next. The highest of the 128 bits is
// set unless the value is zero; the lowest also stands for all that lies below.
struct Head {
  std::uint64_t bits;
  std::uint64_t next;
  int top;
  bool negative;
};

// Up to three digits: the sum is below 2^127 for any world. Signs and sizes vary at random: no branches.
template <int kDigits>
[[gnu::always_inline]] inline Head head_of_words(const std::int64_t* row, int lowest) {
  auto low = static_cast<std::uint64_t>(row[0]);
  auto high = static_cast<std::uint64_t>(row[0] >> 63);
  if constexpr (kDigits > 1) {
    const std::uint64_t shifted = static_cast<std::uint64_t>(row[1]) << 32;
    low += shifted;
    high += static_cast<std::uint64_t>(row[1] >> 32) + (low < shifted ? 1 : 0);
  }
  if constexpr (kDigits > 2) high += static_cast<std::uint64_t>(row[2]);
  const std::uint64_t sign = high >> 63;
  low = (low ^ (0 - sign)) + sign;
  high = (high ^ (0 - sign)) + (low == 0 ? sign : 0);
  const std::uint64_t one = high == 0 ? ~std::uint64_t{0} : 0;  // all bits: one word holds everything
  const std::uint64_t first = high | (low & one);
  const std::uint64_t second = low & ~one;
  const int shift = std::countl_zero(first) & 63;
  const int top = 32 * lowest + 127 - static_cast<int>(one & 64) - shift;
  return {(first << shift) | ((second >> 1) >> (63 - shift)), second << shift, top, sign != 0};
}

// Any number of digits (kDigits, if that is known): carries once for the sign, and once more for the absolute value, of which the
// highest four digits count.
template <int kDigits>
Head head_of_digits(const std::int64_t* row, int lowest, int run_time_digits) {
  const int digits = kDigits != 0 ? kDigits : run_time_digits;
  const auto plus = [](std::int64_t a, std::int64_t b) {  // rows of a broken peer may overflow
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  };
  std::int64_t carry = 0;
  for (int d = 0; d < digits; ++d) carry = plus(row[d], carry) >> 32;
  const std::int64_t sign = carry >> 63;

  std::uint32_t absolute[3 + kExactDigits + 1];  // three zeros below digit 0
  std::uint32_t below[4 + kExactDigits];         // [d]: all digits below d - 3, united
  std::fill_n(absolute, 3, 0);
  std::fill_n(below, 4, 0);
  carry = 0;
  int top = 0;
  for (int d = 0; d < digits; ++d) {
    carry = plus(carry, plus(row[d] ^ sign, -sign));
    const auto digit = static_cast<std::uint32_t>(carry);
    absolute[3 + d] = digit;
    below[4 + d] = below[3 + d] | digit;
    top = digit != 0 ? d : top;
    carry >>= 32;
  }
  absolute[3 + digits] = static_cast<std::uint32_t>(carry);
  top = carry != 0 ? digits : top;

  const std::uint64_t high = (std::uint64_t{absolute[3 + top]} << 32) | absolute[2 + top];
  const std::uint64_t low = (std::uint64_t{absolute[1 + top]} << 32) | absolute[top];
  const int shift = std::countl_zero(high) & 63;
  const std::uint64_t more = below[top] != 0 ? 1 : 0;
  return {(high << shift) | ((low >> 1) >> (63 - shift)), (low << shift) | more, 32 * (lowest + top) + 31 - shift, sign != 0};
}

// Quotients keep what rounding needs: 32 bits or more, from which fewer mantissa bits and one to decide follow, or 64. The rest
// of the division stands for all below.
template <class F>
[[gnu::always_inline]] inline Head divided(const Head& head, std::uint32_t divisor) {
  if (head.bits == 0) return head;
  const std::uint64_t quotient = head.bits / divisor;
  std::uint64_t rest = head.bits % divisor;
  const int shift = std::countl_zero(quotient);  // 1 to 32
  if constexpr (F::kMantissa < 30) return {quotient << shift, rest | head.next, head.top - shift, head.negative};
  const std::uint64_t part = (rest << 32) | (head.next >> 32);
  const std::uint64_t low = (part / divisor) << 32;
  rest = (part % divisor) | (head.next & 0xFFFFFFFF);
  return {(quotient << shift) | (low >> (64 - shift)), (low << shift) | (rest != 0 ? 1 : 0), head.top - shift, head.negative};
}

template <class F>
[[gnu::always_inline]] inline typename F::Bits rounded(const Head& head) {
  if (head.bits == 0) return 0;
  const int keep = std::min(head.top, F::kMantissa) + 1;  // bits; fewer for a subnormal result
  const typename F::Bits sign = head.negative ? F::kSign : 0;
  if (keep < 0) return sign;  // below half of the smallest subnormal
  const std::uint64_t kept = (head.bits >> 1) >> (63 - keep);
  const std::uint64_t rest = head.bits << keep;
  // Above half: up. Half: up to even, or if there is more.
  const std::uint64_t tail = (rest << 1) | head.next | (kept & 1);
  const std::uint64_t up = (rest >> 63) & (tail != 0 ? 1 : 0);
  // A normal result's highest bit is the lowest of the exponent field, which is one more than the shift.
  const std::uint64_t bits = kept + up + (static_cast<std::uint64_t>(std::max(head.top - F::kMantissa, 0)) << F::kMantissa);
  const auto magnitude = static_cast<typename F::Bits>(std::min<std::uint64_t>(bits, F::kOverflow));
  return static_cast<typename F::Bits>(magnitude | sign);
}

template <class F>
typename F::Bits special_result(std::int64_t counts) {
  const bool positive = static_cast<std::uint32_t>(counts) != 0;
  const bool negative = counts >> 32 != 0;
  if (positive && negative) return F::kNan;
  return static_cast<typename F::Bits>(F::kInfinity | (negative ? F::kSign : 0));
}

// A divisor that is a power of two moves the point, `halvings` places; any other divides.
template <class F, int kDigits>
void decode_elements(const std::int64_t* row, std::size_t n, ExactWindow window, std::uint32_t divisor, std::byte* out) {
  const bool divides = !std::has_single_bit(divisor);
  const int halvings = divides ? 0 : std::countr_zero(divisor);
  for (std::size_t i = 0; i < n; ++i, row += window.words()) {
    typename F::Bits result;
    if (window.specials && row[window.digits] != 0) [[unlikely]] {
      result = special_result<F>(row[window.digits]);
    } else {
      Head head;
      if constexpr (kDigits >= 1 && kDigits <= 3)
        head = head_of_words<kDigits>(row, window.lowest);
      else
        head = head_of_digits<kDigits>(row, window.lowest, window.digits);
      if (divides) head = divided<F>(head, divisor);
      head.top -= halvings;
      result = rounded<F>(head);
    }
    std::memcpy(out + i * sizeof result, &result, sizeof result);
  }
}

}  // namespace

ExactNeeds scan(DataType type, const void* in, std::size_t n, const void* factor) {
  ExactNeeds needs;
  for_blocks(type, in, n, factor, [&](const std::byte* elements, std::size_t /*first*/, std::size_t count) {
    with_format(type, [&](auto format) { scan_elements<decltype(format)>(elements, count, needs); });
  });
  return needs;
}

ExactWindow window_for(const ExactNeeds& agreed) {
  const bool specials = agreed.nonfinite != 0;
  if (agreed.highest < 0) return {.lowest = 0, .digits = 0, .specials = specials};
  return {.lowest = -agreed.minus_lowest, .digits = agreed.highest + agreed.minus_lowest + 1, .specials = specials};
}

bool encode(DataType type, const void* in, std::size_t n, ExactWindow window, std::int64_t* digits, const void* factor) {
  check(type, window);
  bool fits = true;
  for_blocks(type, in, n, factor, [&](const std::byte* elements, std::size_t first, std::size_t count) {
    std::int64_t* const rows = digits + first * window.words();
    fits &= with_format(type, [&](auto format) {
      return with_digits<decltype(format)>(window.digits, [&](auto k) {
        return encode_elements<decltype(format), decltype(k)::kValue>(elements, count, window, rows);
      });
    });
  });
  return fits;
}

void decode(DataType type, const std::int64_t* digits, std::size_t n, ExactWindow window, std::uint32_t divisor, void* out) {
  check(type, window);
  expects(divisor >= 1, "exact sums: the divisor is 1 or the world");
  with_format(type, [&](auto format) {
    with_digits<decltype(format)>(window.digits, [&](auto k) {
      decode_elements<decltype(format), decltype(k)::kValue>(digits, n, window, divisor, static_cast<std::byte*>(out));
    });
  });
}

}  // namespace shoal::device
