// SPDX-License-Identifier: Apache-2.0
// How two processes prove to each other, over a fresh stream, that they know the same key, before anything else is parsed: a
// challenge and a keyed digest (libsodium) each way, all messages of fixed size. Then one short "hello" from the client.
// A state machine over a non-blocking descriptor: progress() never blocks; the owner enforces the deadline.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "link/link.h"
#include "link/socket.h"

namespace shoal::link {

struct Key {
  std::array<std::byte, 32> bytes{};
  friend bool operator==(const Key&, const Key&) = default;
};
Key random_key();
// A key from text of any length and a purpose: for secrets that people choose, and to separate the uses of one key.
Key derive_key(std::span<const std::byte> secret, std::string_view purpose);

inline constexpr std::size_t kMaxHello = 192;

class Handshake {
 public:
  // The side that connected; says `hello` (at most kMaxHello bytes) once the server is proven.
  static Handshake client(Descriptor stream, const Key& key, std::span<const std::byte> hello);
  // The side that accepted.
  static Handshake server(Descriptor stream, const Key& key);

  // True when both sides are proven (and, on the server, the hello is here). An error ends it: the stream is closed.
  Result<bool> progress();
  Wakeup wakeup() const;

  // After success.
  std::span<const std::byte> hello() const;   // the client's hello
  const Key& session_key() const;             // fresh, the same on both sides, for digests of what follows
  Descriptor take_stream();
 private:
  // (implementation)
};

}  // namespace shoal::link
