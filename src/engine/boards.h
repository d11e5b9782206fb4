// SPDX-License-Identifier: Apache-2.0
// Boards: the quickest way for data between ranks that map each other's memory. Every rank has one, a window of its own; what it
// shows there all others read in place, so that nothing is sent, and nobody is waited for but those whose data are needed.
//
// Exchanges are numbered 1, 2, ... alike on all ranks. In each a rank may show one message: beside its number, tag and length in
// one line up to kInline bytes, else in the slot that belongs to the line. Exchange n uses line n mod kSlots, which may be
// written again once every rank has finished exchange n - kSlots. Whoever shows exchange n is known to have finished n - kAhead,
// so that collectives in which everybody shows something ask for nothing else; where only some do, what ranks have finished is
// looked up.
//
// What peers write is not trusted: numbers, tags and lengths are compared with what is expected, nothing of it is followed.
// Belongs to the thread that drives its rank.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/types.h"
#include "engine/links.h"
#include "link/link.h"

namespace shoal::engine {

class Boards {
 public:
  static constexpr std::uint64_t kSlots = 8;
  static constexpr std::uint64_t kAhead = 4;            // exchanges that a rank may have shown and not read
  static constexpr std::size_t kSlotBytes = 128 << 10;  // most bytes of a message
  static constexpr std::size_t kInline = 48;            // bytes
  static_assert(2 * kAhead <= kSlots);

  // Of the window that a board is, and of its head, which is all that messages of up to kInline bytes need.
  static Bytes size();
  static Bytes head();

  // `channel`: of the links over which boards are shown.
  Boards(Links& links, World world, Rank self, int channel);

  // True once all boards can be read here; asks for the links that are missing. `own`: this rank's window, fresh.
  bool open(std::span<std::byte> own) { return open_ || make(own); }
  // Whose board is waited for, or whose reading.
  Rank awaited() const { return awaited_; }
  // Why a board can never be read.
  const Status& failure() const { return failure_; }
  int channel() const { return channel_; }

  // The last exchange that this rank has finished.
  std::uint64_t finished() const { return finished_; }
  // This rank needs nothing more of the exchange after that.
  void finish() {
    own_->finished.store(++finished_, std::memory_order_release);  // pairs with look_for_room
    ring();
  }

  // Memory of n bytes to show in exchange `number`; null: a rank, awaited(), may still read what was there.
  std::byte* room(std::uint64_t number, Bytes n) {
    if (number > all_finished_ + kSlots && !look_for_room(number)) return nullptr;
    return payload(*own_, number, n);
  }
  // Shows it.
  void show(std::uint64_t number, link::Tag tag, Bytes n) {
    Line& line = own_->lines[number % kSlots];
    line.length = static_cast<std::uint32_t>(n.value);
    line.tag = tag.value;
    line.number.store(number, std::memory_order_release);  // pairs with look
    ring();
    fetch_to_write(own_->lines[(number + 1) % kSlots]);
  }
  const std::byte* own(std::uint64_t number, Bytes n) const { return payload(*own_, number, n); }

  // What `peer` shows in exchange `number`. Null `data`: nothing yet, or, if there is `another`, not this.
  struct Shown {
    const std::byte* data = nullptr;
    bool another = false;
  };
  Shown look(Rank peer, std::uint64_t number, link::Tag tag, Bytes n) {
    Peer& there = peers_[static_cast<std::size_t>(peer.value)];
    const Line& line = there.board->lines[number % kSlots];
    if (line.number.load(std::memory_order_acquire) != number) return {};  // pairs with show
    there.finished = std::max(there.finished, number - std::min(number, kAhead));
    if (line.tag != tag.value || line.length != n.value) [[unlikely]]
      return {nullptr, true};
    return {payload(*there.board, number, n)};
  }

 private:
  // Two cache lines apart: processors fetch them in pairs.
  static constexpr std::size_t kApart = 128;
  struct alignas(kApart) Line {
    std::atomic<std::uint64_t> number{0};
    std::uint32_t length = 0;
    std::uint32_t tag = 0;
    std::array<std::byte, kInline> payload{};
  };
  struct Board {
    alignas(kApart) std::atomic<std::uint64_t> finished{0};
    std::array<Line, kSlots> lines;
    std::array<std::array<std::byte, kSlotBytes>, kSlots> slots;  // not touched before it is needed
  };
  struct Peer {
    Board* board = nullptr;
    link::Link* link = nullptr;
    std::uint64_t finished = 0;  // at least
  };

  // Peers have read the line: getting it back takes as long as a message, and is over by the time it is written to.
  static void fetch_to_write(Line& line) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : "+m"(line));  // the builtin means another instruction unless told which processor
#else
    __builtin_prefetch(&line, 1);
#endif
  }
  static std::byte* payload(Board& board, std::uint64_t number, Bytes n) {
    return n.value <= kInline ? board.lines[number % kSlots].payload.data() : board.slots[number % kSlots].data();
  }

  bool make(std::span<std::byte> own);
  bool look_for_room(std::uint64_t number);
  void ring() {
    for (link::Link* each : rung_) each->ring();
  }

  Links& links_;
  Rank self_;
  int channel_;
  Board* own_ = nullptr;
  std::vector<Peer> peers_;        // by rank; this one's is empty
  std::vector<link::Link*> rung_;  // to all peers
  bool open_ = false;
  Rank awaited_;
  Status failure_;
  std::uint64_t finished_ = 0;
  std::uint64_t all_finished_ = 0;  // by all ranks, at least
};

}  // namespace shoal::engine
