// SPDX-License-Identifier: Apache-2.0
// State of compressors as bytes: little-endian numbers and arrays, one after the other. Reading checks every length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"

namespace shoal::compress {

class StateWriter {
 public:
  void number(std::uint64_t value);
  void text(std::string_view text);
  void floats(std::span<const float> values);
  void blob(std::span<const std::byte> bytes);

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// After the first thing that is not there, everything is: 0, empty, or false; ok() says whether all was. Nothing is read outside
// the bytes, and nothing larger than them is allocated.
class StateReader {
 public:
  explicit StateReader(std::span<const std::byte> bytes) : left_(bytes) {}

  std::uint64_t number();
  std::string text();
  // False unless the array in the bytes has exactly this length; it is then read.
  bool floats(std::span<float> values);
  // Points into the bytes.
  std::span<const std::byte> blob() { return take(number()); }

  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t bytes);

  std::span<const std::byte> left_;
  bool ok_ = true;
};

}  // namespace shoal::compress
