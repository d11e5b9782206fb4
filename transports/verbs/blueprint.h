// SPDX-License-Identifier: Apache-2.0
// What the two sides of a link tell each other over the handshake's stream before their queue pairs can be joined: where memory,
// ports and queue pairs are, or why there will be no link. Fixed size, little endian. The peer has proven the key, and is still
// not trusted: whatever does not fit is an error. Value types.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/status.h"
#include "transports/verbs/face.h"
#include "transports/verbs/layout.h"

namespace shoal::transports::verbs {

// As it lies on the wire.
struct Blueprint {
  static constexpr std::uint32_t kMagic = 0x31425653;  // "SVB1"; counts up when the layout of memory or immediates changes

  struct Rail {
    Gid gid;
    std::uint32_t memory_key = 0;
    std::uint16_t lid = 0;
    std::uint16_t mtu = 0;
    std::uint32_t ethernet = 0;
    std::uint32_t zero = 0;
  };
  struct Queue {
    std::uint32_t number = 0;
    std::uint32_t first_packet = 0;
    std::uint32_t rail = 0;
    std::uint32_t zero = 0;
  };

  std::uint32_t magic = kMagic;
  std::uint32_t credits = 0;
  std::uint64_t max_message = 0;
  std::uint64_t memory = 0;  // its address
  std::uint32_t rails_used = 0;
  std::uint32_t queues_used = 0;
  std::array<Rail, kMaxRails> rails{};
  std::array<Queue, kMaxQueues> queues{};
  std::array<char, 256> refusal{};  // text; not empty: there will be no link, and nothing else counts

  std::span<const Rail> rail_list() const { return std::span(rails).first(rails_used); }
  std::span<const Queue> queue_list() const { return std::span(queues).first(queues_used); }
  // Of this side's QPs and the peer's, those with the same place are joined.
  std::size_t joined(const Blueprint& other) const { return std::min(queues_used, other.queues_used); }

  void refuse(std::string_view why);
  std::string refused() const;
};
inline constexpr std::size_t kBlueprint = sizeof(Blueprint);
static_assert(kBlueprint == 32 + kMaxRails * 32 + kMaxQueues * 16 + 256);

// Ok, or what is wrong with the peer's, which came from `bytes` of a stream, beside this side's.
Status check(const Blueprint& theirs, const Blueprint& ours);

}  // namespace shoal::transports::verbs
