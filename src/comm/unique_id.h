// SPDX-License-Identifier: Apache-2.0
// What ncclUniqueId's 128 bytes hold: where the root service listens, a random key, and a number for the communicator. Value
// type.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "link/handshake.h"

namespace shoal::comm {

struct UniqueId {
  // "ip:port" of the root service, best first, all with one port; a link-local address without its scope, which means nothing
  // elsewhere. As many as fit() leaves.
  std::vector<std::string> addresses;
  link::Key key;                   // every connection of the communicator proves that it knows this
  std::uint64_t communicator = 0;  // random

  static constexpr std::size_t kBytes = 128;
  std::array<char, kBytes> encode() const;
  // invalid_argument for bytes that encode() did not make (wrong magic, version, digest): "not a unique id of this library".
  static Result<UniqueId> decode(std::span<const char, kBytes> bytes);

  // For texts: "10.0.0.1:5, 10.1.0.1:5".
  std::string address() const;
  // As many of the first addresses as there is room for: 12 of IPv4, or 3 of IPv6 and one of IPv4.
  static std::vector<std::string> fit(std::span<const std::string> addresses);

  friend bool operator==(const UniqueId&, const UniqueId&) = default;
};

}  // namespace shoal::comm
