// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "compress/sparse/from_rank.h"
#include "compress/sparse/schedules.h"

namespace shoal::compress::sparse {

int rounds(World world) {
  const auto ranks = static_cast<std::uint32_t>(world.value);
  return std::bit_width(ranks) - 1 + (std::has_single_bit(ranks) ? 0 : 2);
}

Exchange exchange_of(Rank rank, World world, int round) {
  const auto ranks = static_cast<std::size_t>(world.value), self = static_cast<std::size_t>(rank.value);
  const std::size_t folded = ranks - std::bit_floor(ranks);  // pairs 2j, 2j + 1 that are one
  const bool guest = self < 2 * folded && self % 2 == 0, host = self < 2 * folded && self % 2 == 1;
  if (folded > 0) {
    if (const bool fold = round == 0, unfold = round == rounds(world) - 1; fold || unfold) {
      if (guest) return {self + 1, fold, unfold, unfold};
      if (host) return {self - 1, unfold, fold, false};
      return {};
    }
    --round;
  }
  if (guest) return {};
  const std::size_t place = host ? self / 2 : self - folded;
  const std::size_t other = place ^ (std::size_t{1} << round);
  return {other < folded ? 2 * other + 1 : other + folded, true, true, false};
}

Stages Doubling::run(float* output, std::uint64_t n, const Place& place, const Contribution& own) {
  sum_.assign(own.entries, 0, n, own.values);
  for (int round = 0; round < rounds(place.world); ++round) {
    const Exchange exchange = exchange_of(place.rank, place.world, round);
    lengths_.renew(place.world);
    if (exchange.sends) {
      sent_ = sum_.wire_bytes();
      message_.resize(sent_);
      sum_.encode(message_.data());
      lengths_.sent()[exchange.peer] = sizeof sent_;
    }
    if (exchange.receives) lengths_.received()[exchange.peer] = sizeof received_;
    co_yield lengths_.all_to_all(reinterpret_cast<const std::byte*>(&sent_), reinterpret_cast<std::byte*>(&received_));

    lengths_.renew(place.world);
    if (exchange.sends) lengths_.sent()[exchange.peer] = sent_;
    if (exchange.receives) {
      lengths_.received()[exchange.peer] = received_;
      arrived_.resize(received_);
    }
    co_yield lengths_.all_to_all(message_.data(), arrived_.data());

    if (!exchange.receives) continue;
    if (exchange.replaces) sum_.clear(n);
    if (Status status = sum_.add(arrived_); !status.is_ok()) co_return from_rank(exchange.peer, status);
  }
  sum_.write(output);
  co_return Status();
}

}  // namespace shoal::compress::sparse
