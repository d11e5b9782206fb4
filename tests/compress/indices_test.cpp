// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "compress/sparse/indices.h"
#include "compress/sparse/sum.h"

using namespace shoal::compress::sparse;
using shoal::Code;

namespace {

using Bytes = std::vector<std::byte>;

// Each index with the probability; values that fp16 holds, none of them 0.
Entries random_entries(std::uint64_t n, double density, unsigned seed) {
  std::mt19937 engine(seed);
  std::bernoulli_distribution in(density);
  std::uniform_int_distribution<int> value(1, 1000);
  Entries entries;
  for (std::uint64_t i = 0; i < n; ++i)
    if (in(engine)) entries.push(static_cast<std::uint32_t>(i), static_cast<float>(value(engine) * (engine() % 2 == 0 ? 1 : -1)));
  return entries;
}

Bytes encoded(EntriesView entries, std::uint64_t base, std::uint64_t n, ValueType type, Format format) {
  const Layout layout{format, wire_bytes(format, entries.size(), fillers_of(entries.indices, base), n, type)};
  Bytes wire(layout.bytes + 1, std::byte{0x5A});
  encode(entries, base, n, type, layout, wire.data());
  REQUIRE(wire.back() == std::byte{0x5A});
  wire.pop_back();
  return wire;
}

Bytes bytes(std::initializer_list<int> values) {
  Bytes all;
  for (const int each : values) all.push_back(static_cast<std::byte>(each));
  return all;
}

std::string refusal(const Bytes& wire, std::uint64_t n) {
  Entries out;
  const shoal::Status status = decode(wire, n, out);
  REQUIRE(status.code() == Code::invalid_usage);
  std::vector<float> sum(n);
  REQUIRE(decode_add(wire, n, sum.data()).text() == status.text());
  return std::string(status.text());
}

}  // namespace

TEST_CASE("Every format, value type, length and density comes back as it was, from any base") {
  const std::uint64_t n = GENERATE(0, 1, 2, 57, 255, 4097, 200000);
  const std::uint64_t base = GENERATE(0, 1000);
  for (const double density : {0.0, 0.00001, 0.001, 0.1, 1.0})
    for (int f = 0; f < kFormats; ++f)
      for (const ValueType type : {ValueType::fp32, ValueType::fp16}) {
        const Entries entries = random_entries(n, density, 3);
        Entries moved = entries;
        for (std::uint32_t& index : moved.indices) index += static_cast<std::uint32_t>(base);
        const Bytes wire = encoded(moved.view(), base, n, type, static_cast<Format>(f));
        CAPTURE(n, density, name_of(static_cast<Format>(f)), wire.size());
        Entries back;
        REQUIRE(decode(wire, n, back).is_ok());
        REQUIRE(back.indices == entries.indices);
        REQUIRE(back.values == entries.values);
        std::vector<float> sum(n, 1.0F), expected(n, 1.0F);
        for (std::size_t i = 0; i < entries.size(); ++i) expected[entries.indices[i]] += entries.values[i];
        REQUIRE(decode_add(wire, n, sum.data()).is_ok());
        REQUIRE(sum == expected);
      }
}

TEST_CASE("Runs: one of 65535 needs no filler, one of 65536 does, and long gaps as many as they must") {
  for (const auto& [index, fillers] : std::initializer_list<std::pair<std::uint32_t, std::uint64_t>>{
           {0, 0}, {65535, 0}, {65536, 1}, {131071, 1}, {131072, 2}, {4294967295U, 65535}}) {
    Entries one;
    one.push(index, 2.5F);
    CAPTURE(index);
    REQUIRE(fillers_of(one.indices, 0) == fillers);
    const Bytes wire = encoded(one.view(), 0, kMostElements, ValueType::fp32, Format::runs);
    REQUIRE(wire.size() == 1 + 6 * (1 + fillers));
    Entries back;
    REQUIRE(decode(wire, kMostElements, back).is_ok());
    REQUIRE(back.indices == one.indices);
    REQUIRE(back.values == one.values);
  }
}

TEST_CASE("Lengths on the wire are the formulas', beyond 2^32 elements, too") {
  const std::uint64_t n = (std::uint64_t{1} << 34) + 1, k = std::uint64_t{1} << 33;
  CHECK(wire_bytes(Format::list, k, 0, n, ValueType::fp32) == 1 + 8 * k);
  CHECK(wire_bytes(Format::runs, k, 5, n, ValueType::fp16) == 1 + 4 * (k + 5));
  CHECK(wire_bytes(Format::bitmap, k, 0, n, ValueType::fp32) == 1 + (std::uint64_t{1} << 31) + 1 + 4 * k);
  CHECK(wire_bytes(Format::dense, k, 0, n, ValueType::fp16) == 1 + 2 * n);
}

TEST_CASE("The shortest format: runs, from a sixteenth of the elements on a bitmap, all of them the vector") {
  const std::uint64_t n = 16000;
  const auto format = [&](std::uint64_t k) {
    Entries entries;
    for (std::uint64_t i = 0; i < k; ++i) entries.push(static_cast<std::uint32_t>(i * n / k), 1);
    return layout_of(entries.view(), 0, n, ValueType::fp32).format;
  };
  CHECK(format(1) == Format::runs);
  CHECK(format(1000) == Format::runs);
  CHECK(format(1001) == Format::bitmap);
  CHECK(format(15499) == Format::bitmap);
  CHECK(format(15501) == Format::dense);
  Entries far;
  far.push(4294967295U, 1);  // 65535 fillers
  CHECK(layout_of(far.view(), 0, kMostElements, ValueType::fp32).format == Format::list);
}

TEST_CASE("Values beyond fp16's range become its largest one, never infinite") {
  CHECK(rounded(1e9F, ValueType::fp16) == 65504);
  CHECK(rounded(-65520.0F, ValueType::fp16) == -65504);
  CHECK(rounded(1.0F + 0x1p-12F, ValueType::fp16) == 1);
  CHECK(rounded(1e9F, ValueType::fp32) == 1e9F);
}

TEST_CASE("Malformed messages are refused, and say why") {
  CHECK(refusal({}, 4) == "sparse message without a byte, of 4 elements");
  CHECK(refusal(bytes({4}), 4) == "sparse message: there is no format 0x04");
  CHECK(refusal(bytes({0x20}), 4) == "sparse message: there is no format 0x20");
  CHECK(refusal(bytes({0, 1, 0}), 4) == "sparse list of 2 bytes: entries have 8, and at most 4 elements");
  CHECK(refusal(bytes({0, 4, 0, 0, 0, 0, 0, 0, 0}), 4) == "sparse list: index 4 as entry 0: must be within [0, 4)");
  CHECK(refusal(bytes({0x10, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}), 4) ==
        "sparse list: index 2 as entry 1: must be within [3, 4)");
  CHECK(refusal(bytes({1, 1, 0}), 4) == "sparse runs of 2 bytes: entries have 6");
  CHECK(refusal(bytes({1, 4, 0, 0, 0, 0, 0}), 4) == "sparse runs: entry 0 is element 4 of 4");
  CHECK(refusal(bytes({2}), 4) == "sparse bitmap of 0 bytes: the bits of 4 elements are 1");
  CHECK(refusal(bytes({2, 0x10}), 4) == "sparse bitmap: bits are set behind the last one of 4 elements");
  CHECK(refusal(bytes({2, 3, 0, 0, 0, 0}), 4) == "sparse bitmap: 2 bits are set, and 4 bytes of values follow, 4 each");
  CHECK(refusal(bytes({3, 0}), 4) == "dense vector of 1 bytes: 4 elements have 16");
}

TEST_CASE("A sum is a list up to half of the elements exactly, and the vector from one more on") {
  const std::uint64_t n = 1000;
  const auto range = [&](std::uint32_t first, std::uint32_t last) {
    Entries entries;
    for (std::uint32_t i = first; i < last; ++i) entries.push(i, 1);
    return entries;
  };
  Sum sum;
  sum.assign(range(0, 500).view(), 0, n, ValueType::fp32);
  CHECK_FALSE(sum.dense());
  sum.assign(range(0, 501).view(), 0, n, ValueType::fp32);
  CHECK(sum.dense());
  for (const std::uint32_t last : {500U, 501U}) {
    sum.assign(range(0, 300).view(), 0, n, ValueType::fp16);
    REQUIRE(sum.add(encoded(range(200, last).view(), 0, n, ValueType::fp16, Format::bitmap)).is_ok());
    CHECK(sum.dense() == (last == 501));
    std::vector<float> out(n, 9.0F);
    sum.write(out.data());
    for (std::uint32_t i = 0; i < n; ++i) REQUIRE(out[i] == (i >= last ? 0 : i >= 200 && i < 300 ? 2 : 1));
  }
}

TEST_CASE("Two sums that exchange are the same bits and representation, lists and vectors, zeros of either sign") {
  const std::uint64_t n = 300;
  for (const double a : {0.0, 0.05, 0.3, 0.6, 1.0})
    for (const double b : {0.0, 0.05, 0.3, 0.6, 1.0})
      for (unsigned seed = 1; seed < 5; ++seed) {
        Entries x = random_entries(n, a, seed), y = random_entries(n, b, seed + 10);
        for (std::size_t i = 0; i < x.size(); i += 3) x.values[i] = -0.0F;
        for (std::size_t i = 0; i < y.size(); i += 2) y.values[i] = i % 4 == 0 ? -0.0F : 0.1F;
        Sum left, right;
        left.assign(x.view(), 0, n, ValueType::fp32);
        right.assign(y.view(), 0, n, ValueType::fp32);
        Bytes from_left(left.wire_bytes()), from_right(right.wire_bytes());
        left.encode(from_left.data());
        right.encode(from_right.data());
        REQUIRE(left.add(from_right).is_ok());
        REQUIRE(right.add(from_left).is_ok());
        REQUIRE(left.dense() == right.dense());
        std::vector<float> one(n), other(n);
        left.write(one.data());
        right.write(other.data());
        REQUIRE(std::memcmp(one.data(), other.data(), n * sizeof(float)) == 0);
      }
}
