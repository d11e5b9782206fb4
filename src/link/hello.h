// SPDX-License-Identifier: Apache-2.0
// What the connecting side of a link says in its handshake: between whom, of which communicator, on which channel, by which
// transport. Value type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/types.h"
#include "link/handshake.h"

namespace shoal::link {

struct Hello {
  std::uint64_t communicator = 0;
  Rank from;
  Rank to;
  int channel = 0;
  std::string transport;  // its name, at most kMaxName bytes
  friend bool operator==(const Hello&, const Hello&) = default;

  static constexpr std::size_t kMaxName = 31;
  static constexpr std::size_t kBytes = 64;
  static_assert(kBytes <= kMaxHello);

  std::array<std::byte, kBytes> encode() const;
  // Nothing for bytes that encode() did not make.
  static std::optional<Hello> decode(std::span<const std::byte> bytes);
};

}  // namespace shoal::link
