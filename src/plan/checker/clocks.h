// SPDX-License-Identifier: Apache-2.0
// Who has heard of what: vector clocks. Every rank counts its own steps; messages carry what their sender knew of all counts.
// What happens before what, in every possible timing, is what these say. One owner, one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::plan::checker {

class Clocks {
 public:
  Clocks() = default;
  explicit Clocks(std::size_t world) : world_(world), known_(world * world) {}

  bool on() const { return world_ != 0; }
  std::uint32_t now(std::size_t rank) const { return known_[rank * world_ + rank]; }
  void tick(std::size_t rank) { ++known_[rank * world_ + rank]; }
  // The last step of `other` that `rank` knows to have happened.
  std::uint32_t known(std::size_t rank, std::size_t other) const { return known_[rank * world_ + other]; }
  std::span<const std::uint32_t> of(std::size_t rank) const { return {known_.data() + rank * world_, world_}; }
  void hear(std::size_t rank, std::span<const std::uint32_t> news) {
    std::uint32_t* own = known_.data() + rank * world_;
    for (std::size_t r = 0; r < world_; ++r) own[r] = std::max(own[r], news[r]);
  }

 private:
  std::size_t world_ = 0;
  std::vector<std::uint32_t> known_;
};

}  // namespace shoal::plan::checker
