// SPDX-License-Identifier: Apache-2.0
// The shared slots of all ranks, and the rules of reading and writing them. Nothing but signals and messages orders a write and
// another rank's read, so each pair must be ordered by what the ranks have heard of each other: then it is so in every timing.
// One owner, one thread.
#pragma once

#include <string>
#include <vector>

#include "plan/checker/clocks.h"
#include "plan/plan.h"

namespace shoal::plan::checker {

template <typename Value>
class SharedSlots {
 public:
  SharedSlots() = default;
  SharedSlots(std::size_t world, std::int32_t slots) : world_(world), slots_(slots) {
    places_.resize(world * 2 * static_cast<std::size_t>(slots));
    for (Place& place : places_) place.read.resize(world);
  }

  // False: why() tells.
  bool write(std::size_t owner, std::int32_t slot, std::int16_t run, const Value& value, const Clocks& clocks) {
    Place* place = find(owner, slot, run);
    if (place == nullptr) return false;
    for (std::size_t reader = 0; reader < world_; ++reader)
      if (reader != owner && place->read[reader] > clocks.known(owner, reader))
        return refuse("overwrites shared[{}], which rank {} may not have read yet", slot, reader);
    place->value = value;
    place->run = run;
    place->written = clocks.now(owner);
    return true;
  }

  bool read(std::size_t reader, std::size_t owner, std::int32_t slot, std::int16_t run, const Clocks& clocks, Value& value) {
    Place* place = find(owner, slot, run);
    if (place == nullptr) return false;
    if (place->run != run) return refuse("reads shared[{}] of rank {}, which was not written in this run", slot, owner);
    if (reader != owner && place->written > clocks.known(reader, owner))
      return refuse("reads shared[{}] of rank {}, which may not have been written yet", slot, owner);
    place->read[reader] = clocks.now(reader);
    value = place->value;
    return true;
  }

  const std::string& why() const { return why_; }
  bool uses_slot(std::size_t owner, std::int32_t slot) {
    return find(owner, slot, 0)->run >= 0 || find(owner, slot, 1)->run >= 0;
  }

 private:
  struct Place {
    Value value;
    std::int16_t run = -1;
    std::uint32_t written = 0;
    std::vector<std::uint32_t> read;  // by each rank, last
  };

  // Runs use two sets in turn.
  Place* find(std::size_t owner, std::int32_t slot, std::int16_t run) {
    if (slot < 0 || slot >= slots_) {
      refuse("shared slot {} of {} does not exist", slot, slots_);
      return nullptr;
    }
    return &places_[(owner * 2 + static_cast<std::size_t>(run % 2)) * static_cast<std::size_t>(slots_) +
                    static_cast<std::size_t>(slot)];
  }

  template <typename... Args>
  bool refuse(fmt::format_string<Args...> format, Args&&... args) {
    why_ = fmt::format(format, std::forward<Args>(args)...);
    return false;
  }

  std::size_t world_ = 0;
  std::int32_t slots_ = 0;
  std::vector<Place> places_;  // [owner][set][slot]
  std::string why_;
};

}  // namespace shoal::plan::checker
