// SPDX-License-Identifier: Apache-2.0
// What workers and servers say to each other. Every message is this header, then values; little endian, as all that travels.
//
//   worker to server   push    keys first .. of the push `request`; values; `left` keys of it follow in later messages
//                      pull    keys first .. first+left-1, please; no values
//                      tick    the worker ends iteration `clock`
//                      leave   nothing follows
//   server to worker   ack     the push `request` is taken in, whole
//                      reply   to the pull `request`: as push; `clock` is the slowest worker's when the values were taken
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "link/link.h"

namespace shoal::ps {

enum class Kind : std::uint32_t { push = 1, pull = 2, tick = 3, leave = 4, ack = 5, reply = 6 };

struct Header {
  Kind kind = Kind::push;
  std::uint32_t request = 0;  // the low half of the worker's timestamp: no two that are under way have the same
  std::uint64_t clock = 0;    // the worker's when it made the request
  std::uint64_t first = 0;
  std::uint64_t left = 0;
};
inline constexpr std::size_t kHeader = sizeof(Header);
static_assert(kHeader == 32 && std::is_trivially_copyable_v<Header>);
static_assert(std::endian::native == std::endian::little, "a big-endian host swaps the header's fields here");

// Of every message: another kind of rank at the far end is noticed by its tags.
inline constexpr link::Tag kTag{0x7368'7073};  // "shps"

inline void put(const Header& header, std::span<std::byte> message) { std::memcpy(message.data(), &header, kHeader); }

// Nothing for bytes that put() did not write.
inline std::optional<Header> read_header(const link::Message& message) {
  if (message.tag != kTag || message.payload.size() < kHeader) return std::nullopt;
  Header header;
  std::memcpy(static_cast<void*>(&header), message.payload.data(), kHeader);
  const auto kind = static_cast<std::uint32_t>(header.kind);
  if (kind < static_cast<std::uint32_t>(Kind::push) || kind > static_cast<std::uint32_t>(Kind::reply)) return std::nullopt;
  return header;
}

}  // namespace shoal::ps
