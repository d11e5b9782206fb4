// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of this process that meet at a barrier and copy from each other: what parallel logic needs, without the
// library. A pass takes place as late as it may, and what it will overwrite is spoilt at once, so that using either memory too
// early shows.
#pragma once

#include <algorithm>
#include <barrier>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "train/parallel/exchange.h"

namespace shoal::train {

template <typename T>
class Meeting {
 public:
  explicit Meeting(std::size_t world) : barrier_(static_cast<std::ptrdiff_t>(world)), given_(world), sizes_(world) {}

  std::size_t world() const { return given_.size(); }

  // Everybody puts something down; then take() sees all of it; then everybody may change it again.
  template <typename Take>
  void meet(std::size_t rank, std::span<const T> given, std::span<const std::size_t> sizes, Take&& take) {
    given_[rank] = given;
    sizes_[rank] = sizes;
    barrier_.arrive_and_wait();
    take();
    barrier_.arrive_and_wait();
  }
  std::span<const T> given(std::size_t rank) const { return given_[rank]; }
  std::span<const std::size_t> sizes(std::size_t rank) const { return sizes_[rank]; }

 private:
  std::barrier<> barrier_;
  std::vector<std::span<const T>> given_;
  std::vector<std::span<const std::size_t>> sizes_;
};

template <typename T>
class FakeExchange final : public Exchange<T> {
 public:
  FakeExchange(Meeting<T>& meeting, std::size_t rank) : meeting_(meeting), seat_{.rank = rank, .world = meeting.world()} {}

  Seat seat() const override { return seat_; }

  void all_to_all(std::span<const T> from, std::span<const std::size_t> from_sizes, std::span<T> to,
                  std::span<const std::size_t> to_sizes) override {
    meeting_.meet(seat_.rank, from, from_sizes, [&] {
      auto next = to.begin();
      for (std::size_t peer = 0; peer < seat_.world; ++peer) {
        const auto sizes = meeting_.sizes(peer);
        if (sizes[seat_.rank] != to_sizes[peer]) mismatch = true;
        const std::size_t first =
            std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(seat_.rank), std::size_t{0});
        next = std::ranges::copy(meeting_.given(peer).subspan(first, sizes[seat_.rank]), next).out;
      }
      if (next != to.end()) mismatch = true;
    });
    for (std::size_t peer = 0; peer < seat_.world; ++peer)
      if (peer != seat_.rank) sent += from_sizes[peer];
  }

  void pass(std::span<const T> mine, std::span<T> theirs) override {
    std::ranges::fill(theirs, std::numeric_limits<T>::quiet_NaN());
    begun_.push_back({mine, theirs});
    sent += mine.size();
    ++passes;
  }
  void wait() override {
    for (const Pass& each : begun_)
      meeting_.meet(seat_.rank, each.mine, {}, [&] {
        std::ranges::copy(meeting_.given((seat_.rank + seat_.world - 1) % seat_.world), each.theirs.begin());
      });
    begun_.clear();
  }

  std::size_t sent = 0, passes = 0;  // [values] to others; calls
  bool mismatch = false;             // a part had another size than its receiver expected

 private:
  struct Pass {
    std::span<const T> mine;
    std::span<T> theirs;
  };
  Meeting<T>& meeting_;
  Seat seat_;
  std::vector<Pass> begun_;
};

// Runs body(rank) on a thread a rank.
template <typename Body>
void on_ranks(std::size_t world, Body&& body) {
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < world; ++rank) ranks.emplace_back([&body, rank] { body(rank); });
  for (std::thread& each : ranks) each.join();
}

}  // namespace shoal::train
