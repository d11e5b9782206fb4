// SPDX-License-Identifier: Apache-2.0
// Which server holds which keys: contiguous ranges in the order of the servers. Value types, pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace shoal::ps {

// Keys first .. first+count-1. A key is the number of an element.
struct KeyRange {
  std::size_t first = 0;
  std::size_t count = 0;

  std::size_t end() const { return first + count; }
  bool contains(KeyRange other) const { return first <= other.first && other.end() <= end(); }
  friend bool operator==(KeyRange, KeyRange) = default;
};

// What both have; an empty range if they have nothing in common.
inline KeyRange common(KeyRange a, KeyRange b) {
  const std::size_t first = std::max(a.first, b.first), end = std::min(a.end(), b.end());
  return end > first ? KeyRange{first, end - first} : KeyRange{first, 0};
}

class Partition {
 public:
  explicit Partition(std::span<const std::size_t> shares);

  KeyRange range(std::size_t server) const { return ranges_[server]; }

  // f(server, its keys in `range`) for every server that has some, in order.
  template <typename F>
  void for_each_part(KeyRange range, F&& f) const {
    auto at = std::partition_point(ranges_.begin(), ranges_.end(), [&](KeyRange r) { return r.end() <= range.first; });
    for (; at != ranges_.end() && at->first < range.end(); ++at)
      if (const KeyRange part = common(*at, range); part.count > 0) f(static_cast<std::size_t>(at - ranges_.begin()), part);
  }

 private:
  std::vector<KeyRange> ranges_;
};

// Server i holds the keys [floor(i E / S), floor((i+1) E / S)).
std::vector<std::size_t> equal_shares(std::size_t keys, std::size_t servers);

// BytePS (Jiang et al., OSDI'20): n machines with a worker and a server each, k with a server alone, M keys. A co-located server
// gets (n-k)/(n^2+kn-2k) M, a spare one 2(n-1)/(n^2+kn-2k) M: then a worker's machine sends M + (n-2) times the former, a spare
// machine n times the latter, and the two are equal. From k = n on the spare ones hold everything. Rounded down at each border.
inline constexpr int kMaxMachines = 1 << 15;
std::vector<std::size_t> balanced_shares(std::size_t keys, int worker_machines, int spare_machines);

}  // namespace shoal::ps
