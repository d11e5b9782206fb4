// SPDX-License-Identifier: Apache-2.0
// How two processes prove to each other, over a fresh stream, that they know the same key, before anything else is parsed: a
// challenge and a keyed digest (libsodium) each way, all messages of fixed size. Then one short "hello" from the client.
// A state machine over a non-blocking descriptor: progress() never blocks; the owner enforces the deadline.
//
//   server                                                       client
//     challenge: header, server nonce                     ------>
//                                                         <------  answer: header, client nonce, hello, digest of all so far
//     proof: header, digest of all so far                 ------>
//
// Nothing of a message but its constant header is looked at before its digest is verified. The two digests differ in purpose, so
// that neither side can be made to answer with the other's. Value type but for the stream; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/status.h"
#include "link/link.h"
#include "link/socket.h"

namespace shoal::link {

struct Key {
  std::array<std::byte, 32> bytes{};
  friend bool operator==(const Key&, const Key&) = default;
};
Key random_key();
// A key from text of any length and a purpose: for secrets that people choose, and to separate the uses of one key. Fast, so that
// a secret should be long enough not to be guessed.
Key derive_key(std::span<const std::byte> secret, std::string_view purpose);

inline constexpr std::size_t kMaxHello = 192;

class Handshake {
 public:
  // The side that connected; says `hello` (at most kMaxHello bytes) once it has the server's challenge.
  static Handshake client(Descriptor stream, const Key& key, std::span<const std::byte> hello);
  // The side that accepted.
  static Handshake server(Descriptor stream, const Key& key);

  // True when both sides are proven (and, on the server, the hello is here). An error ends it: the stream is closed.
  // remote_error: the peer closed, or the connection broke, before the end (a client with another key sees this, too);
  // invalid_usage: the peer is not one of ours, speaks another version, or knows another key.
  Result<bool> progress();
  Wakeup wakeup() const;

  // After success.
  std::span<const std::byte> hello() const;  // the client's hello
  const Key& session_key() const;            // fresh, the same on both sides, for digests of what follows
  Descriptor take_stream();

 private:
  enum class Role : std::uint8_t { server, client };
  enum class Step : std::uint8_t { challenge, answer, proof, done, failed };

  static constexpr std::size_t kDigest = 32;
  static constexpr std::size_t kHeader = 16;               // magic and version
  static constexpr std::size_t kChallenge = kHeader + 32;  // header, nonce
  static constexpr std::size_t kAnswer =
      kHeader + 32 + 1 + kMaxHello + kDigest;               // header, nonce, length and padded hello, digest
  static constexpr std::size_t kProof = kHeader + kDigest;  // header, digest
  static constexpr std::size_t kTranscript = kChallenge + kAnswer + kProof;
  struct Part {
    std::size_t begin;
    std::size_t end;
  };

  Handshake(Role role, Descriptor stream, const Key& key) : role_(role), stream_(std::move(stream)), key_(key) {}
  Part part() const;
  bool is_writing() const;
  std::span<std::byte> bytes(std::size_t begin, std::size_t end);
  Key digest(std::size_t transcript_bytes, std::string_view purpose) const;
  Status move_bytes();
  Status check_header() const;
  Status finish_part();
  void begin_part();
  Status fail_with(Status why);

  Role role_;
  Step step_ = Step::challenge;
  Descriptor stream_;
  Key key_;
  Key session_key_;
  // All messages in their order; the bytes before `moved_` have been read or written.
  std::array<std::byte, kTranscript> transcript_{};
  std::size_t moved_ = 0;
  std::size_t own_hello_ = 0;  // bytes
  std::array<std::byte, kMaxHello> hello_{};
  Status failure_;
};

}  // namespace shoal::link
