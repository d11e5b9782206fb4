// SPDX-License-Identifier: Apache-2.0
// What ncclUniqueId's 128 bytes hold: where the root service listens, a random key, and a number for the communicator. Value
// type.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "core/status.h"
#include "link/handshake.h"

namespace shoal::comm {

struct UniqueId {
  std::string address;             // "ip:port" of the root service
  link::Key key;                   // every connection of the communicator proves that it knows this
  std::uint64_t communicator = 0;  // random

  static constexpr std::size_t kBytes = 128;
  std::array<char, kBytes> encode() const;
  // invalid_argument for bytes that encode() did not make (wrong magic, version, digest): "not a unique id of this library".
  static Result<UniqueId> decode(std::span<const char, kBytes> bytes);
};

}  // namespace shoal::comm
