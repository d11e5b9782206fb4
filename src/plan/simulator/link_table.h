// SPDX-License-Identifier: Apache-2.0
// Numbers for (from, to, channel) in the order in which they are first asked for. A plan set may use a million links, of the
// N^2 that there could be: open addressing, no deletion.
#pragma once

#include <cstdint>
#include <vector>

namespace shoal::plan {

class LinkTable {
 public:
  LinkTable() : slots_(1024) {}

  // `added` is true if the link is new; its number is then the number of links before.
  std::int32_t find_or_add(std::int32_t from, std::int32_t to, std::int32_t channel, bool& added) {
    const std::uint64_t key = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 40) |
                              (static_cast<std::uint64_t>(static_cast<std::uint32_t>(to)) << 12) |
                              static_cast<std::uint64_t>(static_cast<std::uint32_t>(channel));
    Slot& slot = slots_[find(key)];
    added = slot.number < 0;
    if (!added) return slot.number;
    const std::int32_t number = size_++;
    slot = {key, number};
    if (static_cast<std::size_t>(size_) * 2 > slots_.size()) grow();
    return number;
  }
  std::int32_t size() const { return size_; }

  static constexpr std::int32_t kMaxRanks = 1 << 24, kMaxChannels = 1 << 12;  // what a key holds

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t number = -1;
  };

  std::size_t find(std::uint64_t key) const {
    std::uint64_t hash = key * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    std::size_t at = static_cast<std::size_t>(hash) & (slots_.size() - 1);
    while (slots_[at].number >= 0 && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.number >= 0) slots_[find(slot.key)] = slot;
  }

  std::vector<Slot> slots_;
  std::int32_t size_ = 0;
};

}  // namespace shoal::plan
