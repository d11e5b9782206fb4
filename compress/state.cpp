// SPDX-License-Identifier: Apache-2.0
#include "compress/state.h"

#include <bit>
#include <cstring>

namespace shoal::compress {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

void StateWriter::number(std::uint64_t value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  bytes_.insert(bytes_.end(), from, from + sizeof value);
}

void StateWriter::text(std::string_view text) {
  number(text.size());
  const auto* from = reinterpret_cast<const std::byte*>(text.data());
  bytes_.insert(bytes_.end(), from, from + text.size());
}

void StateWriter::blob(std::span<const std::byte> bytes) {
  number(bytes.size());
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void StateWriter::floats(std::span<const float> values) {
  number(values.size());
  const std::span<const std::byte> from = std::as_bytes(values);
  bytes_.insert(bytes_.end(), from.begin(), from.end());
}

std::span<const std::byte> StateReader::take(std::size_t bytes) {
  if (!ok_ || bytes > left_.size()) {
    ok_ = false;
    left_ = {};
    return {};
  }
  const std::span<const std::byte> taken = left_.first(bytes);
  left_ = left_.subspan(bytes);
  return taken;
}

std::uint64_t StateReader::number() {
  std::uint64_t value = 0;
  if (const auto from = take(sizeof value); !from.empty()) std::memcpy(&value, from.data(), sizeof value);
  return value;
}

std::string StateReader::text() {
  const auto from = take(number());
  return {reinterpret_cast<const char*>(from.data()), from.size()};
}

bool StateReader::floats(std::span<float> values) {
  if (number() != values.size()) ok_ = false;
  const auto from = take(values.size_bytes());
  if (ok_ && !values.empty()) std::memcpy(values.data(), from.data(), from.size());
  return ok_;
}

}  // namespace shoal::compress
