// SPDX-License-Identifier: Apache-2.0
// The element types of the tables and their arithmetic, on bit patterns: what a result must be is worked out here, apart from
// the library that is measured. Pure functions and constants.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace shoal::perf {

enum class Kind { signed_integer, unsigned_integer, floating };

struct ElementType {
  ncclDataType_t type;
  const char* name;  // nccl-tests' word
  std::size_t bytes;
  Kind kind;
  int exponent_bits;  // floating only
  int mantissa_bits;  // stored ones
  bool has_infinity;  // f8e4m3 has none: its top exponent holds numbers, and one NaN
};

std::span<const ElementType> element_types();  // in the order of "-d all"
const ElementType* find_element_type(std::string_view name);

// An element as its bits, in the low bytes of a word.
using Bits = std::uint64_t;

Bits load(const ElementType& type, const std::byte* at);
void store(const ElementType& type, Bits bits, std::byte* at);

// Floating types. decode is exact; encode rounds to nearest, ties to even.
double decode(const ElementType& type, Bits bits);
Bits encode(const ElementType& type, double value);

// Integer types, two's complement, wrapping.
std::int64_t to_signed(const ElementType& type, Bits bits);
Bits from_integer(const ElementType& type, std::uint64_t value);

bool is_nan(const ElementType& type, Bits bits);
bool is_infinite(const ElementType& type, Bits bits);

// How many representable numbers lie between two floating elements; the largest value if either is NaN.
std::uint64_t ulps_between(const ElementType& type, Bits a, Bits b);

// Integers up to this magnitude, and sums and differences within it, are exact in a floating type.
std::uint64_t exact_limit(const ElementType& type);

}  // namespace shoal::perf
