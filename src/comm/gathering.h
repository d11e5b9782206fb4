// SPDX-License-Identifier: Apache-2.0
// The root service's count of who has come: takes records, finds what contradicts, and makes the table. No I/O, no clock.
// One owner, one thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "comm/messages.h"

namespace shoal::comm {

class Gathering {
 public:
  // The record is in; or why these ranks cannot be one communicator, naming the two that contradict (invalid_usage) or the one
  // that failed before it could join (remote_error).
  Status add(const Record& record);

  bool complete() const { return !records_.empty() && static_cast<std::int32_t>(records_.size()) == first_->world.value; }
  // Ranks still awaited; 0 while nobody has come.
  std::int32_t missing() const { return first_ ? first_->world.value - static_cast<std::int32_t>(records_.size()) : 0; }
  std::optional<World> world() const { return first_ ? std::optional(first_->world) : std::nullopt; }

  // When complete; the caller fills in root_rank.
  Table table() const;
  // timeout: "only 2 of 4 ranks came within 1000 ms; missing: 2, 3"; the culprit is the first of the missing.
  Notice nobody_else_came(std::uint64_t waited_ms) const;

 private:
  std::optional<Record> first_;  // whose world and version the others must match; without settings
  std::map<std::int32_t, Record> records_;
};

}  // namespace shoal::comm
