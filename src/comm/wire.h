// SPDX-License-Identifier: Apache-2.0
// Little-endian numbers and length-prefixed text, into and out of bytes that travel. A reader never trusts what it reads: it
// stays inside its span, and one look at finished() at the end says whether everything was there and nothing was left over.
// Value types, no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace shoal::comm {

class ByteWriter {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_unsigned_v<T>);
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  void signed_number(std::int32_t value) { number(static_cast<std::uint32_t>(value)); }
  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    raw(std::as_bytes(std::span(value)));
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  // Zero once anything was missing.
  template <typename T>
  T number() {
    static_assert(std::is_unsigned_v<T>);
    const std::span<const std::byte> from = raw(sizeof(T));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < from.size(); ++i) value |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
    return static_cast<T>(value);
  }
  std::int32_t signed_number() { return static_cast<std::int32_t>(number<std::uint32_t>()); }
  std::span<const std::byte> raw(std::size_t n) {
    if (n > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const std::span<const std::byte> taken = rest_.first(n);
    rest_ = rest_.subspan(n);
    return taken;
  }
  // At most `longest` bytes; a longer one fails the reader.
  std::string text(std::size_t longest) {
    const auto length = number<std::uint32_t>();
    if (length > longest) failed_ = true;
    const std::span<const std::byte> from = failed_ ? std::span<const std::byte>{} : raw(length);
    std::string value(from.size(), '\0');
    if (!from.empty()) std::memcpy(value.data(), from.data(), from.size());
    return value;
  }

  std::size_t left() const { return rest_.size(); }
  bool failed() const { return failed_; }
  bool finished() const { return !failed_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

}  // namespace shoal::comm
