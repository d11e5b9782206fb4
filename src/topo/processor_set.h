// SPDX-License-Identifier: Apache-2.0
// A set of processors (hardware threads) by their system numbers, as text the way the kernel writes it. Value type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace shoal::topo {

class ProcessorSet {
 public:
  // No machine has a processor with a higher number; what a text says beyond it is refused, not allocated.
  static constexpr int kHighest = 65535;

  ProcessorSet() = default;
  // 0 <= each <= kHighest; any order, repetitions count once.
  explicit ProcessorSet(std::vector<int> numbers);

  bool empty() const { return numbers_.empty(); }
  int count() const { return static_cast<int>(numbers_.size()); }
  bool has(int number) const;
  const std::vector<int>& numbers() const { return numbers_; }  // ascending
  ProcessorSet within(const ProcessorSet& other) const;         // those that both have
  bool covers(const ProcessorSet& other) const { return other.within(*this) == other; }

  friend bool operator==(const ProcessorSet&, const ProcessorSet&) = default;

 private:
  std::vector<int> numbers_;
};

// "0-3,8"; "" for none.
std::string text_of(const ProcessorSet& set);
// The same text, with blanks and a newline at its end allowed; invalid_argument says what is wrong. Any bytes may be handed in.
Result<ProcessorSet> parse_processors(std::string_view text);

// The same set as NCCL's files write it: groups of 32 processors as hexadecimal numbers, the highest first: "00000001,0000ffff".
std::string mask_of(const ProcessorSet& set);
Result<ProcessorSet> parse_mask(std::string_view text);

}  // namespace shoal::topo
