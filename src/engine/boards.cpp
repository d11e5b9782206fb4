// SPDX-License-Identifier: Apache-2.0
#include "engine/boards.h"

#include <cstddef>
#include <memory>

#include "core/expects.h"

namespace shoal::engine {

Bytes Boards::size() { return {sizeof(Board)}; }
Bytes Boards::head() { return {offsetof(Board, slots)}; }

Boards::Boards(Links& links, World world, Rank self, int channel)
    : links_(links), self_(self), channel_(channel), peers_(static_cast<std::size_t>(world.value)) {}

// Fresh memory is zero, which is an empty board: exchange 0 is never shown.
bool Boards::make(std::span<std::byte> own) {
  expects(own.size() >= sizeof(Board), "a window as large as a board");
  own_ = reinterpret_cast<Board*>(own.data());
  bool all = true;
  for (std::size_t q = 0; q < peers_.size(); ++q) {
    const Rank rank{static_cast<std::int32_t>(q)};
    if (rank == self_ || peers_[q].board != nullptr) continue;
    peers_[q].link = links_.get(rank, channel_);
    if (peers_[q].link == nullptr) {
      awaited_ = rank;
      all = false;
      continue;
    }
    const std::span<std::byte> window = peers_[q].link->window();
    if (window.size() < sizeof(Board)) {
      failure_ =
          fail(Code::system_error, "the memory of rank {} cannot be mapped here ({})", rank.value, peers_[q].link->transport());
      return false;
    }
    peers_[q].board = reinterpret_cast<Board*>(window.data());
    rung_.push_back(peers_[q].link);
  }
  open_ = all;
  return all;
}

// Whether what was shown kSlots exchanges ago has been read by all.
bool Boards::look_for_room(std::uint64_t number) {
  std::uint64_t least = finished_;
  for (std::size_t q = 0; q < peers_.size(); ++q) {
    Peer& peer = peers_[q];
    if (peer.board == nullptr) continue;  // this rank's
    if (peer.finished + kSlots < number)
      peer.finished = std::max(peer.finished, peer.board->finished.load(std::memory_order_acquire));  // pairs with finish
    if (peer.finished < least || peer.finished + kSlots < number) awaited_ = {static_cast<std::int32_t>(q)};
    least = std::min(least, peer.finished);
  }
  all_finished_ = least;
  return number <= all_finished_ + kSlots;
}

}  // namespace shoal::engine
