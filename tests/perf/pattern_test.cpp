// SPDX-License-Identifier: Apache-2.0
// The promise of the data: one result, bit for bit, in every order of reduction and with rounding at each step.
#include "perf/pattern.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

using namespace shoal::perf;

namespace {

// One step of a reduction as a library makes it: rounded to the type.
Bits combine(const DataSpec& spec, Bits a, Bits b) {
  const ElementType& type = *spec.type;
  if (type.kind == Kind::floating) {
    const double x = decode(type, a), y = decode(type, b);
    switch (spec.reduction) {
      case Reduction::prod: return encode(type, x * y);
      case Reduction::min: return encode(type, std::min(x, y));
      case Reduction::max: return encode(type, std::max(x, y));
      case Reduction::sum:
      case Reduction::avg:
      case Reduction::mulsum: return encode(type, x + y);
    }
  }
  const bool less = type.kind == Kind::signed_integer ? to_signed(type, a) < to_signed(type, b) : a < b;
  switch (spec.reduction) {
    case Reduction::prod: return from_integer(type, a * b);
    case Reduction::min: return less ? a : b;
    case Reduction::max: return less ? b : a;
    case Reduction::sum:
    case Reduction::avg:
    case Reduction::mulsum: return from_integer(type, a + b);
  }
  return 0;
}

std::vector<Bits> terms_of(const DataSpec& spec, std::size_t index) {
  std::vector<Bits> terms;
  for (int rank = 0; rank < spec.world; ++rank) {
    Bits bits = input_bits(spec, rank, index);
    if (spec.reduction == Reduction::mulsum) {
      const int factor = rank % 2 == 0 ? 1 : 2;
      bits = spec.type->kind == Kind::floating ? encode(*spec.type, factor * decode(*spec.type, bits))
                                               : from_integer(*spec.type, static_cast<std::uint64_t>(factor) * bits);
    }
    terms.push_back(bits);
  }
  return terms;
}

Bits in_line(const DataSpec& spec, const std::vector<Bits>& terms) {
  return std::accumulate(terms.begin() + 1, terms.end(), terms.front(), [&](Bits a, Bits b) { return combine(spec, a, b); });
}

Bits in_a_tree(const DataSpec& spec, std::vector<Bits> terms) {
  while (terms.size() > 1) {
    std::vector<Bits> next;
    for (std::size_t i = 0; i + 1 < terms.size(); i += 2) next.push_back(combine(spec, terms[i], terms[i + 1]));
    if (terms.size() % 2 == 1) next.push_back(terms.back());
    terms = std::move(next);
  }
  return terms.front();
}

Bits finish(const DataSpec& spec, Bits total) {
  if (spec.reduction != Reduction::avg) return total;
  const ElementType& type = *spec.type;
  if (type.kind == Kind::floating) return encode(type, decode(type, total) / spec.world);
  if (type.kind == Kind::unsigned_integer) return total / static_cast<std::uint64_t>(spec.world);
  return from_integer(type, static_cast<std::uint64_t>(to_signed(type, total) / spec.world));
}

std::vector<int> worlds() {
  std::vector<int> result(16);
  std::iota(result.begin(), result.end(), 1);
  result.insert(result.end(), {17, 31, 64, 100, 256});
  return result;
}

}  // namespace

TEST_CASE("the result is the same bits in line, backwards, in a tree and rotated, for every type, operation and world") {
  for (const ElementType& type : element_types()) {
    for (const ReductionInfo& info : reductions()) {
      for (const int world : worlds()) {
        int wrong = 0;
        for (std::size_t index = 0; index < 60; ++index) {
          const DataSpec spec{&type, info.reduction, world, 1 + index % 3};
          std::vector<Bits> terms = terms_of(spec, index);
          const Bits expected = result_bits(spec, index);
          wrong += finish(spec, in_line(spec, terms)) == expected ? 0 : 1;
          wrong += finish(spec, in_a_tree(spec, terms)) == expected ? 0 : 1;
          std::rotate(terms.begin(), terms.begin() + static_cast<std::ptrdiff_t>(index) % world, terms.end());
          wrong += finish(spec, in_line(spec, terms)) == expected ? 0 : 1;
          std::reverse(terms.begin(), terms.end());
          wrong += finish(spec, in_line(spec, terms)) == expected ? 0 : 1;
        }
        CAPTURE(type.name, info.name, world);
        if (wrong != 0) CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("no input or result is NaN, infinite or minus zero") {
  for (const ElementType& type : element_types()) {
    if (type.kind != Kind::floating) continue;
    for (const ReductionInfo& info : reductions()) {
      int bad = 0;
      for (std::size_t index = 0; index < 3000; ++index) {
        const DataSpec spec{&type, info.reduction, 5, 2};
        for (const Bits bits : {input_bits(spec, static_cast<int>(index % 5), index), result_bits(spec, index)}) {
          const bool minus_zero = bits == Bits{1} << (8 * type.bytes - 1);
          bad += is_nan(type, bits) || is_infinite(type, bits) || minus_zero ? 1 : 0;
        }
      }
      CAPTURE(type.name, info.name);
      CHECK(bad == 0);
    }
  }
}

TEST_CASE("leaving a rank out, counting it twice or swapping indices shows") {
  for (const ElementType& type : element_types()) {
    for (const Reduction reduction :
         {Reduction::sum, Reduction::prod, Reduction::mulsum, Reduction::max, Reduction::min, Reduction::avg}) {
      for (const int world : {2, 3, 8, 64}) {
        const DataSpec spec{&type, reduction, world, 1};
        int missing = 0, twice = 0, shifted = 0;
        constexpr std::size_t kElements = 4096;
        for (std::size_t index = 0; index < kElements; ++index) {
          std::vector<Bits> terms = terms_of(spec, index);
          const Bits expected = result_bits(spec, index);
          const bool extreme = reduction == Reduction::max || reduction == Reduction::min;
          std::vector<Bits> more = terms;
          more.push_back(terms[1]);
          twice += extreme || !is_right(spec, expected, finish(spec, in_line(spec, more))) ? 1 : 0;
          terms.erase(terms.begin() + 1);
          missing += !is_right(spec, expected, finish(spec, in_line(spec, terms))) ? 1 : 0;
          shifted += result_bits(spec, index + 1) != expected ? 1 : 0;
        }
        CAPTURE(type.name, static_cast<int>(reduction), world);
        CHECK(missing > 3);
        CHECK(twice > 3);
        CHECK(shifted > 100);
      }
    }
  }
}

TEST_CASE("all ranks put in different data, and seeds change it") {
  const DataSpec one{find_element_type("float"), Reduction::sum, 4, 1}, two{find_element_type("float"), Reduction::sum, 4, 2};
  int same_rank = 0, same_seed = 0;
  for (std::size_t index = 0; index < 1000; ++index) {
    same_rank += input_bits(one, 0, index) == input_bits(one, 1, index) ? 1 : 0;
    same_seed += input_bits(one, 0, index) == input_bits(two, 0, index) ? 1 : 0;
  }
  CHECK(same_rank < 10);
  CHECK(same_seed < 10);
}

TEST_CASE("buffers hold the pattern, also beyond its period and from any element on") {
  const ElementType& type = *find_element_type("half");
  const DataSpec spec{&type, Reduction::sum, 3, 1};
  constexpr std::size_t kCount = 2 * Pattern::kPeriod + 1000;
  Pattern pattern(spec, kCount);
  std::vector<std::byte> buffer(kCount * type.bytes);
  pattern.write_input(buffer, 2);
  int wrong = 0;
  for (std::size_t i = 0; i < kCount; i += 97) {
    wrong += load(type, buffer.data() + i * type.bytes) == input_bits(spec, 2, i % Pattern::kPeriod) ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(pattern.wrong_inputs(buffer, 2) == 0);
  CHECK(pattern.wrong_inputs(std::span(buffer).subspan(70000 * type.bytes), 2, 70000) == 0);
  CHECK(pattern.wrong_inputs(buffer, 1) > 100000);
}

TEST_CASE("wrong elements are counted one by one") {
  const ElementType& type = *find_element_type("float");
  const DataSpec spec{&type, Reduction::sum, 2, 5};
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, 2 * Pattern::kPeriod + 3}) {
    Pattern pattern(spec, count);
    std::vector<std::byte> buffer(count * type.bytes);
    for (std::size_t i = 0; i < count; ++i) store(type, result_bits(spec, i % Pattern::kPeriod), buffer.data() + i * type.bytes);
    CHECK(pattern.wrong_results(buffer) == 0);
    buffer.front() ^= std::byte{1};
    CHECK(pattern.wrong_results(buffer) == 1);
    buffer.back() ^= std::byte{0x80};
    CHECK(pattern.wrong_results(buffer) == (count == 1 ? 1 : 2));
  }
  Pattern empty(spec, 0);
  empty.write_input({}, 0);
  CHECK(empty.wrong_results({}) == 0);
}

TEST_CASE("averages of floats may be 2 ulp off, nothing else may") {
  const ElementType& half = *find_element_type("half");
  const DataSpec average{&half, Reduction::avg, 3, 1}, sum{&half, Reduction::sum, 3, 1};
  const DataSpec integers{find_element_type("int32"), Reduction::avg, 3, 1};
  CHECK(is_right(average, 0x3c00, 0x3c02));
  CHECK_FALSE(is_right(average, 0x3c00, 0x3c03));
  CHECK_FALSE(is_right(average, 0x3c00, 0x7e00));
  CHECK_FALSE(is_right(sum, 0x3c00, 0x3c01));
  CHECK_FALSE(is_right(integers, 5, 6));
}

TEST_CASE("an average is right whether the sum or each input is divided") {
  for (const ElementType& type : element_types()) {
    if (type.kind != Kind::floating) continue;
    for (const int world : worlds()) {
      if (type.bytes == 1 && world > 64) continue;  // 1/n of such worlds is subnormal in f8e4m3
      int wrong = 0;
      for (std::size_t index = 0; index < 500; ++index) {
        const DataSpec spec{&type, Reduction::avg, world, 1};
        const double factor = decode(type, encode(type, 1.0 / world));
        std::vector<Bits> terms = terms_of(spec, index);
        for (Bits& term : terms) term = encode(type, factor * decode(type, term));
        wrong += is_right(spec, result_bits(spec, index), in_line(spec, terms)) ? 0 : 1;
        wrong += is_right(spec, result_bits(spec, index), in_a_tree(spec, terms)) ? 0 : 1;
        wrong += is_right(spec, result_bits(spec, index), finish(spec, in_line(spec, terms_of(spec, index)))) ? 0 : 1;
      }
      CAPTURE(type.name, world);
      CHECK(wrong == 0);
    }
  }
}
