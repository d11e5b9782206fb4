// SPDX-License-Identifier: Apache-2.0
// Many objects of one type, known by their number: growing moves none of them, and given back ones are used again. One owner,
// one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace shoal::plan::checker {

inline constexpr std::uint32_t kNone = 0xffffffff;

template <typename T>
class Arena {
 public:
  T& operator[](std::uint32_t i) { return blocks_[i >> kBits][i & (kBlock - 1)]; }
  const T& operator[](std::uint32_t i) const { return blocks_[i >> kBits][i & (kBlock - 1)]; }
  std::uint32_t size() const { return size_; }

  std::uint32_t make() {
    if (!free_.empty()) {
      const std::uint32_t i = free_.back();
      free_.pop_back();
      return i;
    }
    if ((size_ & (kBlock - 1)) == 0) blocks_.push_back(std::make_unique<T[]>(kBlock));
    return size_++;
  }
  // The object stays as it is, for whoever gets it next.
  void give_back(std::uint32_t i) { free_.push_back(i); }

 private:
  static constexpr std::uint32_t kBits = 7, kBlock = 1u << kBits;
  std::vector<std::unique_ptr<T[]>> blocks_;
  std::uint32_t size_ = 0;
  std::vector<std::uint32_t> free_;
};

}  // namespace shoal::plan::checker
