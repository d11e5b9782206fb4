// SPDX-License-Identifier: Apache-2.0
#include "link/hello.h"

#include <algorithm>
#include <cstring>

#include "core/expects.h"

namespace shoal::link {
namespace {

// Layout, little-endian: magic 8, communicator 8, from 4, to 4, channel 4, length of the name 1, name 31, zeros to the end.
constexpr std::uint64_t kMagic = 0x3130'6b6e'696c'4853;  // "SHlink01"
constexpr std::size_t kNameAt = 29;
static_assert(kNameAt + Hello::kMaxName <= Hello::kBytes);

void put(std::byte* at, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t get(const std::byte* at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return value;
}

std::int32_t get_int(const std::byte* at) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(get(at, 4))); }

}  // namespace

std::array<std::byte, Hello::kBytes> Hello::encode() const {
  expects(transport.size() <= kMaxName, "a transport's name has at most Hello::kMaxName bytes");
  std::array<std::byte, kBytes> out{};
  put(&out[0], kMagic, 8);
  put(&out[8], communicator, 8);
  put(&out[16], static_cast<std::uint32_t>(from.value), 4);
  put(&out[20], static_cast<std::uint32_t>(to.value), 4);
  put(&out[24], static_cast<std::uint32_t>(channel), 4);
  put(&out[28], transport.size(), 1);
  std::memcpy(&out[kNameAt], transport.data(), transport.size());
  return out;
}

std::optional<Hello> Hello::decode(std::span<const std::byte> bytes) {
  if (bytes.size() != kBytes || get(&bytes[0], 8) != kMagic || get(&bytes[28], 1) > kMaxName) return std::nullopt;
  Hello hello;
  hello.communicator = get(&bytes[8], 8);
  hello.from = {get_int(&bytes[16])};
  hello.to = {get_int(&bytes[20])};
  hello.channel = get_int(&bytes[24]);
  hello.transport.assign(reinterpret_cast<const char*>(&bytes[kNameAt]), get(&bytes[28], 1));
  const auto again = hello.encode();
  return std::equal(again.begin(), again.end(), bytes.begin()) ? std::optional(hello) : std::nullopt;
}

}  // namespace shoal::link
