// SPDX-License-Identifier: Apache-2.0
#include "link/handshake.h"

#include <poll.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "core/expects.h"

namespace shoal::link {
namespace {

// Eight bytes that no other protocol starts with, the version of what follows (little-endian), zeros.
constexpr std::array<unsigned char, 16> kHeaderBytes = {0x8b, 'S', 'h', 'o', 'a', 'l', '\r', '\n', 1, 0, 0, 0, 0, 0, 0, 0};
constexpr std::size_t kMagic = 8;

constexpr std::string_view kClientProof = "shoal handshake: client proof";
constexpr std::string_view kServerProof = "shoal handshake: server proof";
constexpr std::string_view kSession = "shoal handshake: session key";

// Once a process; any thread.
void require_sodium() {
  static const bool ready = sodium_init() >= 0;
  expects(ready, "libsodium can be initialised");
}

unsigned char* raw(std::byte* p) { return reinterpret_cast<unsigned char*>(p); }
const unsigned char* raw(const std::byte* p) { return reinterpret_cast<const unsigned char*>(p); }
const unsigned char* raw(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

// BLAKE2b of the purpose, with its length before it, and the data; keyed if there is a key.
Key keyed_digest(const Key* key, std::string_view purpose, std::span<const std::byte> data) {
  require_sodium();
  Key out;
  crypto_generichash_state state;
  const unsigned char purpose_bytes = static_cast<unsigned char>(purpose.size());
  expects(purpose.size() <= 255, "a purpose has at most 255 bytes");
  crypto_generichash_init(&state, key ? raw(key->bytes.data()) : nullptr, key ? key->bytes.size() : 0, out.bytes.size());
  crypto_generichash_update(&state, &purpose_bytes, 1);
  crypto_generichash_update(&state, raw(purpose), purpose.size());
  crypto_generichash_update(&state, raw(data.data()), data.size());
  crypto_generichash_final(&state, raw(out.bytes.data()), out.bytes.size());
  return out;
}

}  // namespace

Key random_key() {
  require_sodium();
  Key key;
  randombytes_buf(key.bytes.data(), key.bytes.size());
  return key;
}

Key derive_key(std::span<const std::byte> secret, std::string_view purpose) { return keyed_digest(nullptr, purpose, secret); }

Handshake Handshake::client(Descriptor stream, const Key& key, std::span<const std::byte> hello) {
  expects(hello.size() <= kMaxHello, "a hello has at most kMaxHello bytes");
  Handshake made(Role::client, std::move(stream), key);
  std::copy(hello.begin(), hello.end(), made.hello_.begin());
  made.own_hello_ = hello.size();
  return made;
}

Handshake Handshake::server(Descriptor stream, const Key& key) {
  Handshake made(Role::server, std::move(stream), key);
  made.begin_part();
  return made;
}

Result<bool> Handshake::progress() {
  if (step_ == Step::failed) return failure_;
  while (step_ != Step::done) {
    if (Status moved = move_bytes(); !moved.is_ok()) return fail_with(std::move(moved));
    if (!is_writing())
      if (Status ours = check_header(); !ours.is_ok()) return fail_with(std::move(ours));
    if (moved_ < part().end) return false;
    if (Status finished = finish_part(); !finished.is_ok()) return fail_with(std::move(finished));
  }
  return true;
}

Wakeup Handshake::wakeup() const {
  if (step_ == Step::done || step_ == Step::failed) return {};
  return {stream_.get(), static_cast<short>(is_writing() ? POLLOUT : POLLIN), false};
}

std::span<const std::byte> Handshake::hello() const { return std::span(hello_).first(own_hello_); }
const Key& Handshake::session_key() const { return session_key_; }
Descriptor Handshake::take_stream() { return std::move(stream_); }

Handshake::Part Handshake::part() const {
  switch (step_) {
    case Step::challenge: return {0, kChallenge};
    case Step::answer: return {kChallenge, kChallenge + kAnswer};
    case Step::proof: return {kChallenge + kAnswer, kTranscript};
    case Step::done:
    case Step::failed: break;
  }
  return {kTranscript, kTranscript};
}

bool Handshake::is_writing() const { return (step_ == Step::answer) == (role_ == Role::client); }

std::span<std::byte> Handshake::bytes(std::size_t begin, std::size_t end) {
  return std::span(transcript_).subspan(begin, end - begin);
}

Key Handshake::digest(std::size_t transcript_bytes, std::string_view purpose) const {
  return keyed_digest(&key_, purpose, std::span(transcript_).first(transcript_bytes));
}

// As many bytes of the current part as go now, and never one of the next.
Status Handshake::move_bytes() {
  const auto left = bytes(moved_, part().end);
  const Transfer transfer = is_writing() ? write_some(stream_.get(), left) : read_some(stream_.get(), left);
  moved_ += transfer.bytes;
  if (!transfer.closed) return {};
  if (transfer.error != 0) return fail(Code::remote_error, "handshake: the connection broke: {}", errno_text(transfer.error));
  if (role_ == Role::client && step_ == Step::proof)
    return fail(Code::remote_error, "handshake: the peer closed the connection without proof of the key; it may know another");
  return fail(Code::remote_error, "handshake: the peer closed the connection after {} of {} bytes", moved_ - part().begin,
              part().end - part().begin);
}

// Strangers are found out by their first bytes.
Status Handshake::check_header() const {
  const std::size_t here = std::min(moved_ - part().begin, kHeader);
  const std::byte* const header = transcript_.data() + part().begin;
  if (std::memcmp(header, kHeaderBytes.data(), std::min(here, kMagic)) != 0)
    return fail(Code::invalid_usage, "handshake: the peer is not one of ours");
  if (std::memcmp(header, kHeaderBytes.data(), here) != 0)
    return fail(Code::invalid_usage, "handshake: the peer is of another version of this library");
  return {};
}

// After the last byte of a part: verifies what was read, goes on.
Status Handshake::finish_part() {
  if (!is_writing() && step_ != Step::challenge) {
    const Key expected = digest(part().end - kDigest, step_ == Step::answer ? kClientProof : kServerProof);
    if (sodium_memcmp(expected.bytes.data(), transcript_.data() + part().end - kDigest, kDigest) != 0)
      return fail(Code::invalid_usage, "handshake: the peer knows another key");
  }
  if (!is_writing() && step_ == Step::answer) {
    const std::byte* const length = transcript_.data() + kChallenge + kHeader + 32;
    own_hello_ = std::to_integer<std::size_t>(*length);
    if (own_hello_ > kMaxHello)
      return fail(Code::invalid_usage, "handshake: a hello of {} bytes, allowed are {}", own_hello_, kMaxHello);
    std::copy_n(length + 1, kMaxHello, hello_.begin());
  }
  step_ = static_cast<Step>(static_cast<std::uint8_t>(step_) + 1);
  if (step_ == Step::done)
    session_key_ = digest(kTranscript, kSession);
  else if (is_writing())
    begin_part();
  return {};
}

// Writes the part that this side says next.
void Handshake::begin_part() {
  const Part now = part();
  std::memcpy(transcript_.data() + now.begin, kHeaderBytes.data(), kHeader);
  const auto content = bytes(now.begin + kHeader, now.end);
  if (step_ != Step::proof) {
    const Key nonce = random_key();
    std::copy(nonce.bytes.begin(), nonce.bytes.end(), content.begin());
  }
  if (step_ == Step::answer) {
    content[32] = static_cast<std::byte>(own_hello_);
    std::copy(hello_.begin(), hello_.end(), content.begin() + 33);
  }
  if (step_ != Step::challenge) {
    const Key proof = digest(now.end - kDigest, step_ == Step::answer ? kClientProof : kServerProof);
    std::copy(proof.bytes.begin(), proof.bytes.end(), content.end() - static_cast<std::ptrdiff_t>(kDigest));
  }
}

Status Handshake::fail_with(Status why) {
  step_ = Step::failed;
  stream_.reset();
  failure_ = why;
  return why;
}

}  // namespace shoal::link
