// SPDX-License-Identifier: Apache-2.0
// The sending half of a verbs link. A message is written into the next of the peer's slots, header and payload at once; long ones
// in parts, one by each queue. A direct payload goes from user memory where that is pinned, and straight to where the peer has
// offered to have it, if it has. Part of a link, driven by its thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "link/link.h"
#include "transports/verbs/queues.h"
#include "transports/verbs/receiver.h"

namespace shoal::transports::verbs {

class Sender {
 public:
  // All referenced objects outlive this; `queues` is joined.
  Sender(Queues& queues, const Layout& layout, Receiver& receiver);

  // As the link's. A direct payload that waits for room blocks the way.
  std::span<std::byte> acquire(Bytes n);
  void commit(link::Tag tag);
  bool send_direct(std::span<const std::byte> payload, link::Tag tag);
  // Whether the last one's memory may change.
  bool sent();

  // Posts what found no room before.
  void progress();
  // What headers say of the peer's releases, and immediates of the kinds released and offer.
  void take_header(std::uint32_t released) { note_released(unwrap(released, released_, 32)); }
  void take_released(std::uint32_t immediate) { note_released(count_of(immediate, released_)); }
  void take_offer(std::uint32_t immediate);

  bool has_waiting() const { return direct_ == Direct::waiting; }
  // The last acquire found no room, or a direct payload is not out of user memory.
  bool is_starving() const { return refused_ || direct_ != Direct::none; }
  const std::string& complaint() const { return complaint_; }

 private:
  enum class Direct : std::uint8_t { none, waiting, flying };
  // Where a payload comes from and goes to.
  struct Source {
    std::span<const std::byte> payload;
    bool staged = false;  // right behind the header's place, in this side's memory
    std::array<std::uint32_t, kMaxRails> keys{};
  };

  bool has_slot() const { return next_ - released_ < layout_.slots(); }
  void note_released(std::uint64_t count);
  std::size_t parts_of(std::size_t bytes) const;
  std::size_t queue_of(std::size_t part) const { return (next_ + part) % queues_.count(); }
  bool has_room(std::size_t parts) const;
  void start_direct();
  void post(const Source& source, link::Tag tag, const std::optional<Offer>& landing, bool told);
  std::optional<Offer> landing(std::size_t bytes) const;

  Queues& queues_;
  const Layout layout_;
  Receiver& receiver_;
  std::uint64_t next_ = 0;      // number of the next message
  std::uint64_t released_ = 0;  // by the peer
  std::span<std::byte> acquired_;
  bool refused_ = false;
  std::optional<std::uint64_t> offered_;  // the number that the peer's last offer is for
  Direct direct_ = Direct::none;
  std::span<const std::byte> payload_;  // of the waiting one
  link::Tag tag_;
  std::array<std::uint64_t, kMaxQueues> flying_{};  // writes that must have ended, by queue
  std::string complaint_;
};

}  // namespace shoal::transports::verbs
