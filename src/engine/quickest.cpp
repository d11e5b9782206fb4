// SPDX-License-Identifier: Apache-2.0
#include "engine/quickest.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shoal::engine {

bool Quickest::is_asked() {
  is_held_ = to_hold_ > 0;
  if (!is_held_) return true;
  --to_hold_;
  ++idle_[at(Way::pulled)];
  return false;
}

void Quickest::took(Way way, std::uint64_t ns) {
  if (is_held_) {
    held_ns_ += ns;
    ++held_calls_;
  } else {
    asked_[at(way)] = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(ns, 1, std::numeric_limits<std::uint32_t>::max()));
  }
}

Quickest::Figures Quickest::told() const {
  Figures figures = asked_;
  std::uint32_t& planned = figures[at(Way::planned)];
  if (held_calls_ > 0 && planned > 0)
    planned = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(held_ns_ / held_calls_, 1, planned));
  return figures;
}

void Quickest::hear(const Figures& figures) {
  for (std::size_t way = 0; way < figures.size(); ++way) heard_[way] = std::max(heard_[way], figures[way]);
}

Quickest::Way Quickest::choose() {
  learn();
  const Way way = next(), other = way == Way::planned ? Way::pulled : Way::planned;
  tried_[at(way)] = std::min(tried_[at(way)] + 1, kTries[at(way)]);
  idle_[at(way)] = 0;
  ++idle_[at(other)];
  last_ = way;
  if (way == Way::planned) {
    const bool settled = tried_ == kTries && best() == Way::planned;
    const std::uint32_t planned = figures_[at(Way::planned)];
    to_hold_ = settled ? kHeld : planned > 0 && planned < kShort ? kTrialHeld : 0;
  }
  return way;
}

// What was heard.
void Quickest::learn() {
  asked_ = {};
  held_ns_ = held_calls_ = 0;
  for (std::size_t way = 0; way < figures_.size(); ++way) {
    const std::uint32_t now = std::exchange(heard_[way], 0);
    if (now == 0) continue;
    const bool slower = figures_[way] != 0 && now > figures_[way];
    has_changed_ |= slower && way == at(last_) && now / 3 > figures_[way] / 2;
    figures_[way] = slower ? figures_[way] + (now - figures_[way]) / 2 : now;
  }
}

Quickest::Way Quickest::next() {
  for (const Way way : {Way::planned, Way::pulled})
    if (tried_[at(way)] < kTries[at(way)]) return way;
  const Way other = best() == Way::planned ? Way::pulled : Way::planned;
  // What a trial costs beyond the quicker way: so that trials take the same share of time, whatever that is.
  const std::uint64_t calls = other == Way::planned ? 1 + kTrialHeld : 1;
  const std::uint64_t patience = calls * kPatience * figures_[at(other)] / std::max<std::uint32_t>(figures_[at(best())], 1);
  const bool changed = std::exchange(has_changed_, false) && idle_[at(other)] > kHeld;
  return changed || idle_[at(other)] >= patience ? other : best();
}

}  // namespace shoal::engine
