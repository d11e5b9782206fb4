// SPDX-License-Identifier: Apache-2.0
// Messages on an authenticated stream: length (4 bytes, little endian), keyed digest (32 bytes), payload. The digest covers the
// direction, a counter and the payload with the session's key, so that no frame can be forged, changed, repeated, reordered or
// sent back. Pure: bytes in, payloads out. One owner, one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "link/handshake.h"

namespace shoal::comm {

inline constexpr std::size_t kFrameHeader = 4 + 32;
inline constexpr std::size_t kMaxFramePayload = 0xffff'ffff;

enum class Side : std::uint8_t { client = 1, server = 2 };

class FrameEncoder {
 public:
  FrameEncoder(const link::Key& session, Side sender) : session_(session), sender_(sender) {}
  // What goes before the next payload.
  std::array<std::byte, kFrameHeader> header(std::span<const std::byte> payload);

 private:
  link::Key session_;
  Side sender_;
  std::uint64_t counter_ = 0;
};

class FrameDecoder {
 public:
  FrameDecoder(const link::Key& session, Side sender, std::size_t max_payload)
      : session_(session), sender_(sender), max_payload_(max_payload) {}

  // Bytes as they arrive, cut anywhere.
  void feed(std::span<const std::byte> bytes);
  // The next payload; nothing while it is incomplete. An error (too long, wrong digest) is for good.
  Result<std::optional<std::vector<std::byte>>> next();

 private:
  link::Key session_;
  Side sender_;
  std::size_t max_payload_;
  std::uint64_t counter_ = 0;
  std::vector<std::byte> buffer_;  // grows with what arrived, never with what a length promises
  std::size_t used_ = 0;           // bytes of buffer_ already given out
};

}  // namespace shoal::comm
