// SPDX-License-Identifier: Apache-2.0
#include "train/data/idx.h"

#include <catch2/catch.hpp>

#include "train/error.h"

namespace shoal::train {
namespace {

using Catch::Matchers::Contains;
using Bytes = std::vector<std::uint8_t>;

Bytes idx_bytes(const std::vector<std::uint32_t>& dimensions, std::size_t cells) {
  Bytes bytes{0, 0, 8, static_cast<std::uint8_t>(dimensions.size())};
  for (const std::uint32_t d : dimensions) {
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(d >> shift));
  }
  for (std::size_t i = 0; i < cells; ++i) bytes.push_back(static_cast<std::uint8_t>(i));
  return bytes;
}

TEST_CASE("idx: a good file gives its dimensions and its cells in place") {
  const Bytes bytes = idx_bytes({2, 3, 4}, 24);
  const Idx idx = parse_idx(bytes, 3);
  CHECK(idx.dimensions == std::vector<std::size_t>{2, 3, 4});
  CHECK(idx.cells.data() == bytes.data() + 16);
  CHECK(idx.cells.size() == 24);
  CHECK(idx.cells[23] == 23);
}

TEST_CASE("idx: dimensions are big-endian") {
  CHECK(parse_idx(idx_bytes({0x0102}, 0x0102), 1).dimensions == std::vector<std::size_t>{0x0102});
}

TEST_CASE("idx: every truncation of a file is refused, and so is a byte too many") {
  Bytes bytes = idx_bytes({2, 5}, 10);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    CHECK_THROWS_AS(parse_idx(std::span(bytes).first(length), 2), Error);
  }
  bytes.push_back(0);
  CHECK_THROWS_WITH(parse_idx(bytes, 2), Contains("11 bytes of cells"));
}

TEST_CASE("idx: a wrong magic names the byte") {
  Bytes bytes = idx_bytes({3}, 3);
  bytes[1] = 1;
  CHECK_THROWS_WITH(parse_idx(bytes, 1), Contains("not an IDX file"));
  bytes[1] = 0;
  bytes[2] = 0x0d;
  CHECK_THROWS_WITH(parse_idx(bytes, 1), Contains("type 0x0d at byte 2"));
  bytes[2] = 8;
  CHECK_THROWS_WITH(parse_idx(bytes, 3), Contains("16") || Contains("1 IDX dimensions at byte 3, expected 3"));
}

TEST_CASE("idx: dimensions whose product overflows are refused") {
  CHECK_THROWS_AS(parse_idx(idx_bytes({0xffffffff, 0xffffffff, 0xffffffff}, 1), 3), Error);
  CHECK_THROWS_AS(parse_idx(idx_bytes({0x80000000, 0x80000000, 4}, 0), 3), Error);  // 2^64 is 0 in 64 bits
  CHECK_THROWS_AS(parse_idx(idx_bytes({0x10000, 0x10000, 0x10000, 0x10000}, 0), 4), Error);
}

TEST_CASE("idx: an empty dimension is refused") {
  CHECK_THROWS_WITH(parse_idx(idx_bytes({0, 28}, 0), 2), Contains("dimension 0 is empty"));
  CHECK_THROWS_WITH(parse_idx(idx_bytes({28, 0}, 0), 2), Contains("dimension 1 is empty") || Contains("do not fill"));
}

TEST_CASE("idx: no dimensions, or too many, are refused before a byte is read") {
  CHECK_THROWS_AS(parse_idx({}, 0), Error);
  CHECK_THROWS_AS(parse_idx({}, kMaxIdxDimensions + 1), Error);
}

}  // namespace
}  // namespace shoal::train
