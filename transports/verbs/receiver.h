// SPDX-License-Identifier: Apache-2.0
// The receiving half of a verbs link: puts together what immediates tell of, and tells the peer where its next payload may land,
// and what has been released. The peer is not trusted: what cannot be ends the link. Part of a link, driven by its thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/link.h"
#include "transports/verbs/queues.h"

namespace shoal::transports::verbs {

class Receiver {
 public:
  // `queues` is joined and outlives this.
  Receiver(Queues& queues, const Layout& layout);

  // The oldest unreleased message if all of it is here.
  const link::Message* front();
  void release();
  // As Direct::expect. What has been offered to the peer stays offered until the message comes.
  void expect(std::span<std::byte> target);

  // An immediate of the kinds message and part. A header says at once how much the peer has released, modulo 2^32: this side may
  // wait for that and not for the message.
  std::optional<std::uint32_t> take(std::uint32_t immediate);
  // Posts what found no room before.
  void progress();

  // For the headers of messages that go out, which tell it, too.
  std::uint64_t tell_released() { return told_ = released_; }
  // Whether something is to be posted that found no room.
  bool owes() const { return owes_offer_ || released_ - told_ >= layout_.batch(); }

  // What the peer has done that cannot be; empty while all is well.
  const std::string& complaint() const { return complaint_; }

 private:
  struct Slot {
    int parts = 0;        // that are here, the one with the header included
    bool headed = false;  // that one is here
  };
  Slot& slot(std::uint64_t n) { return slots_[n % layout_.slots()]; }
  bool read(const Slot& slot);
  void offer();

  Queues& queues_;
  const Layout layout_;
  std::vector<Slot> slots_;
  std::uint64_t released_ = 0;  // messages; also the number of the oldest unreleased one
  std::uint64_t told_ = 0;      // of them, to the peer
  link::Message message_;
  bool complete_ = false;  // message_ is the oldest
  std::span<std::byte> target_;
  bool owes_offer_ = false;
  std::span<std::byte> offered_;      // to the peer, for the message of this number
  std::uint64_t offered_number_ = 0;  // counts where offered_ is not empty
  std::string complaint_;
};

}  // namespace shoal::transports::verbs
