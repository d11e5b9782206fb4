// SPDX-License-Identifier: Apache-2.0
// Where things lie in the memory that a link pins on either side, and what the numbers beside writes (immediates) mean. The same
// on both sides; little endian.
//
//   slots     messages from the peer: a line that ends with the header, then the payload; message n in slot n mod slots
//   offers    from the peer: where the payload of its next message may land
//   staging   this side's messages on their way out, one behind the other like slots
//   outbox    this side's offers on their way out
//
// A slot, and the same place in staging, is free again once the peer has said that it has released the message. Releases are told
// with every header, and by themselves when `batch` of them are untold; there are as many more slots, and one for a message sent
// directly, so that `credits` messages always fit.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/types.h"

namespace shoal::transports::verbs {

static_assert(std::endian::native == std::endian::little, "a big-endian host swaps what follows");

inline constexpr std::size_t kMaxRails = 4;   // ports that one link uses
inline constexpr std::size_t kMaxQueues = 8;  // queue pairs

struct Header {
  std::uint32_t tag = 0;
  std::uint32_t length = 0;    // bytes of payload
  std::uint32_t released = 0;  // how many of the peer's messages this side has released, modulo 2^32
  std::uint16_t parts = 1;     // in which the payload comes, each by another queue pair
  std::uint16_t landed = 0;    // 1: it lies where the peer has offered
};
static_assert(sizeof(Header) == 16);

struct Offer {
  std::uint64_t number = 0;  // of the message
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::array<std::uint32_t, kMaxRails> keys{};  // by the offering side's rails
};
static_assert(sizeof(Offer) == 40);

class Layout {
 public:
  Layout(Bytes max_message, int credits)
      : max_message_(max_message.value),
        batch_(static_cast<std::uint64_t>(std::max(credits / 2, 1))),
        slots_(static_cast<std::uint64_t>(credits) + batch_),
        stride_(kLine + (max_message_ + kLine - 1) / kLine * kLine) {}

  std::size_t max_message() const { return max_message_; }
  std::uint64_t slots() const { return slots_; }
  std::uint64_t batch() const { return batch_; }

  // Offsets into the memory of one side, of message or offer n.
  std::size_t slot(std::uint64_t n) const { return n % slots_ * stride_ + kLine; }  // the payload; the header is before it
  std::size_t offer(std::uint64_t n) const { return slots_ * stride_ + n % offers() * kLine; }
  std::size_t staging(std::uint64_t n) const { return received() + slot(n); }
  std::size_t outbox(std::uint64_t n) const { return received() + offer(n); }
  std::size_t bytes() const { return 2 * received(); }

  // What can be under way to a side that does not look: its peer's messages, offers for its own, releases of its own, greetings.
  int receives() const { return static_cast<int>(slots_ + offers() + slots_ / batch_ + 2) + kReposted; }
  int writes() const { return 2 * receives() + 8; }
  // Receives are posted again by so many.
  static constexpr int kReposted = 8;

 private:
  static constexpr std::size_t kLine = 64;
  std::uint64_t offers() const { return slots_ + 1; }
  std::size_t received() const { return slots_ * stride_ + offers() * kLine; }

  std::size_t max_message_;
  std::uint64_t batch_;
  std::uint64_t slots_;  // credits, one for a direct message, and batch - 1
  std::size_t stride_;
};

// What an immediate says: three bits of kind, the rest a count modulo 2^29.
enum class Kind : std::uint8_t { message = 0, part = 1, offer = 2, released = 3, greeting = 4 };
inline constexpr int kCountBits = 29;
constexpr std::uint32_t immediate(Kind kind, std::uint64_t count) {
  return static_cast<std::uint32_t>(kind) << kCountBits | static_cast<std::uint32_t>(count & ((1u << kCountBits) - 1));
}
constexpr Kind kind_of(std::uint32_t immediate) { return static_cast<Kind>(immediate >> kCountBits); }

// The count nearest to `about` whose last `bits` bits are those of `low`.
constexpr std::uint64_t unwrap(std::uint64_t low, std::uint64_t about, int bits) {
  const std::uint64_t span = std::uint64_t{1} << bits;
  const std::uint64_t ahead = (low - about) & (span - 1);
  return ahead < span / 2 ? about + ahead : about + ahead - span;
}
constexpr std::uint64_t count_of(std::uint32_t immediate, std::uint64_t about) { return unwrap(immediate, about, kCountBits); }

}  // namespace shoal::transports::verbs
