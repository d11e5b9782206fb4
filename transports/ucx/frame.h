// SPDX-License-Identifier: Apache-2.0
// What two ends of a UCX link say to each other. On the stream of the handshake: each side's Offer with its worker's address
// behind it, a byte kReady once the other's greeting has come through UCX, and then, for as long as the link lives, the number of
// messages that the side has released (four bytes each time). Through UCX: active messages with a FrameHeader. Little endian.
//
// Credits travel on the stream, or beside messages, but never in messages of their own: a message to a peer that has just left
// makes the kernel throw away what that peer had sent before, if UCX carries it over TCP, and makes UCX do so over anything else.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace shoal::transports::ucx {

inline constexpr unsigned kMessage = 1;  // UCX's number of our active message
inline constexpr std::byte kReady{'R'};

struct Offer {
  static constexpr std::uint32_t kMagic = 0x31584355;         // "UCX1"
  static constexpr std::uint32_t kLongestAddress = 64 << 10;  // a few hundred bytes for each device is usual

  std::uint32_t magic = kMagic;
  std::int32_t credits = 0;
  std::uint64_t max_message = 0;
  std::uint64_t link = 0;  // what the other side's headers call this end: random, so that nobody else can
  std::uint32_t address_bytes = 0;
  std::uint32_t unused = 0;
};
static_assert(sizeof(Offer) == 32);

enum class Kind : std::uint32_t {
  greeting,  // the path works, and what was sent before has been handed on; no payload, and no number
  eager,     // from wire memory; takes a credit
  direct,    // from user memory; one at a time
};

struct FrameHeader {
  std::uint64_t link = 0;
  std::uint32_t number = 0;    // of the message on this link, from 0; wraps
  std::uint32_t released = 0;  // eager messages of the other direction released so far; wraps
  std::uint32_t tag = 0;
  Kind kind = Kind::eager;
};
static_assert(sizeof(FrameHeader) == 24);
static_assert(std::endian::native == std::endian::little, "a big-endian host swaps the fields here");

}  // namespace shoal::transports::ucx
