// SPDX-License-Identifier: Apache-2.0
#include "comm/frame.h"

#include <sodium.h>

#include <algorithm>

#include "comm/wire.h"
#include "core/expects.h"

namespace shoal::comm {
namespace {

using Digest = std::array<std::byte, 32>;

const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

Digest digest(const link::Key& session, Side sender, std::uint64_t counter, std::span<const std::byte> payload) {
  ByteWriter prefix;
  prefix.number(static_cast<std::uint8_t>(sender));
  prefix.number(counter);
  const std::vector<std::byte> before = prefix.take();
  Digest out;
  crypto_generichash_state state;
  crypto_generichash_init(&state, raw(session.bytes.data()), session.bytes.size(), out.size());
  crypto_generichash_update(&state, raw(before.data()), before.size());
  crypto_generichash_update(&state, raw(payload.data()), payload.size());
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(out.data()), out.size());
  return out;
}

}  // namespace

std::array<std::byte, kFrameHeader> FrameEncoder::header(std::span<const std::byte> payload) {
  expects(payload.size() <= kMaxFramePayload, "a frame's length fits its field");
  std::array<std::byte, kFrameHeader> header;
  for (std::size_t i = 0; i < 4; ++i) header[i] = static_cast<std::byte>(payload.size() >> (8 * i));
  std::ranges::copy(digest(session_, sender_, counter_++, payload), header.begin() + 4);
  return header;
}

void FrameDecoder::feed(std::span<const std::byte> bytes) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
  used_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

Result<std::optional<std::vector<std::byte>>> FrameDecoder::next() {
  const std::span<const std::byte> waiting = std::span<const std::byte>(buffer_).subspan(used_);
  if (waiting.size() < kFrameHeader) return std::optional<std::vector<std::byte>>{};
  const auto length = ByteReader(waiting).number<std::uint32_t>();
  if (length > max_payload_)
    return fail(Code::internal_error, "a frame of {} bytes, where at most {} are allowed", length, max_payload_);
  if (waiting.size() < kFrameHeader + length) return std::optional<std::vector<std::byte>>{};
  const std::span<const std::byte> payload = waiting.subspan(kFrameHeader, length);
  const Digest right = digest(session_, sender_, counter_, payload);
  if (sodium_memcmp(right.data(), waiting.data() + 4, right.size()) != 0)
    return fail(Code::internal_error, "frame {} ({} bytes) has a wrong digest", counter_, length);
  ++counter_;
  used_ += kFrameHeader + length;
  return std::optional(std::vector<std::byte>(payload.begin(), payload.end()));
}

}  // namespace shoal::comm
