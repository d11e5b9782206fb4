// SPDX-License-Identifier: Apache-2.0
// One rank's input, output and scratch while its plan is run symbolically, and the rules of reading and writing them. Every run
// of the lanes (one slice) has its own chunks of input and output; scratch is the same memory in all of them, but what one run
// left there is void in the next. One owner, one thread.
#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "plan/checker/links.h"
#include "plan/contributions.h"
#include "plan/plan.h"

namespace shoal::plan::checker {

// What holds for all ranks.
template <typename Value>
struct Rules {
  Collective collective;
  std::int32_t world, root, chunks, space;
  std::int16_t runs;
  bool in_place, by_reference;
  Value whole;  // if it reduces: a sum of everything

  bool complete(const Value& value) const {
    if constexpr (Value::kReduces)
      return value.from == whole.from;
    else
      return true;
  }
  // What has to be in output[c] of a rank in the end; sums excepted.
  Moved goal(std::int32_t c, std::int32_t rank) const {
    switch (collective) {
      case Collective::broadcast:
      case Collective::scatter: return {c, Rank{root}};
      case Collective::all_to_all:
      case Collective::all_to_all_v: return {rank * chunks + c % chunks, Rank{c / chunks}};
      default: return {c, Rank{c / chunks}};
    }
  }
  // Whether slot s is as long as chunk c, whatever the count.
  bool fits_slot(std::int32_t s, std::int32_t c) const {
    const bool equal_blocks = in_blocks(collective) && collective != Collective::all_gather_v;
    const std::int32_t period = equal_blocks ? chunks : space;
    return period == 1 || s == c || (s - c) % period == 0;
  }
};

template <typename Value>
class Memory {
 public:
  Memory(const Plan& plan, const Rules<Value>& rules) : rules_(&rules), rank_(plan.rank.value), slots_(plan.scratch) {
    const auto range = [&](auto has) {
      if (rules.collective == Collective::barrier) return std::pair{0, 0};
      if (!in_blocks(rules.collective)) return std::pair{0, has(rules.collective, rank_, rules.root, 0) ? rules.space : 0};
      if (has(rules.collective, rank_, rules.root, rank_ == 0 ? 1 : 0)) return std::pair{0, rules.space};  // all blocks
      const std::int32_t own = has(rules.collective, rank_, rules.root, rank_) ? rank_ * rules.chunks : rules.space;
      return std::pair{own, std::min(own + rules.chunks, rules.space)};
    };
    std::tie(input_begin_, input_end_) = range(has_input);
    std::tie(output_begin_, output_end_) = range(has_output);
    const auto runs = static_cast<std::size_t>(rules.runs);
    output_.resize(runs * outputs());
    scratch_.resize(static_cast<std::size_t>(slots_));
    if (rules.in_place) uses_.resize(runs * static_cast<std::size_t>(input_end_ - input_begin_));
    if (rules.by_reference) {
      output_references_.resize(output_.size());
      scratch_references_.resize(scratch_.size());
    }
  }

  // Element `i` of a buffer as a lane reads it in a run. False: why() tells.
  bool load(Buffer buffer, std::int32_t i, std::int16_t lane, std::int16_t run, Value& value) {
    if (buffer == Buffer::input) return load_input(i, lane, run, value);
    const Place* place = find(buffer, i, run);
    if (place == nullptr) return false;
    if (place->value.chunk < 0 || place->run != run)
      return refuse("reads {}[{}] before anything was written there", name(buffer), i);
    if (place->lane != lane) return refuse("lanes {} and {} both touch {}[{}]", place->lane, lane, name(buffer), i);
    value = place->value;
    return true;
  }

  bool store(Buffer buffer, std::int32_t i, std::int16_t lane, std::int16_t run, const Value& value, const Links<Value>& links) {
    Place* place = find(buffer, i, run);
    if (place == nullptr || !belongs(buffer, i, value)) return false;
    if (place->lane >= 0 && place->lane != lane)
      return refuse("lanes {} and {} both touch {}[{}]", place->lane, lane, name(buffer), i);
    const bool input_too = rules_->in_place && buffer == Buffer::output && i >= input_begin_ && i < input_end_;
    if (input_too || rules_->by_reference)
      if (!may_overwrite(buffer, i, lane, run, value, links, input_too)) return false;
    place->value = value;
    place->lane = lane;
    place->run = run;
    return true;
  }

  // The newest message of a link refers to this memory.
  void refer(Buffer buffer, std::int32_t i, std::int16_t run, LinkId link, std::uint32_t message) {
    const bool as_output = buffer == Buffer::output || (buffer == Buffer::input && rules_->in_place);
    if (as_output && i >= output_begin_ && i < output_end_) output_references_[at(i, run)] = {link, message};
    if (buffer == Buffer::scratch) scratch_references_[static_cast<std::size_t>(i)] = {link, message};
  }

  const std::string& why() const { return why_; }
  std::int32_t output_begin() const { return output_begin_; }
  std::int32_t output_end() const { return output_end_; }
  const Value& result(std::int32_t c, std::int16_t run) const { return output_[at(c, run)].value; }
  bool uses_slot(std::int32_t s) const { return s < slots_ && scratch_[static_cast<std::size_t>(s)].lane >= 0; }

 private:
  struct Place {
    Value value;
    std::int16_t lane = -1;  // the only one that may touch it
    std::int16_t run = -1;   // when it was written
  };
  struct Reference {
    LinkId link;
    std::uint32_t message = 0;  // its number among those posted on the link, from 1
  };
  // In place: who has read a chunk of the input.
  static constexpr std::int16_t kSeveral = -2;
  struct Use {
    std::int16_t lane = -1;  // or kSeveral
    std::uint8_t reads = 0;  // 2: or more
  };

  static std::string_view name(Buffer buffer) { return buffer == Buffer::output ? "output" : "scratch"; }
  std::size_t outputs() const { return static_cast<std::size_t>(output_end_ - output_begin_); }
  std::size_t at(std::int32_t i, std::int16_t run) const {
    return static_cast<std::size_t>(run) * outputs() + static_cast<std::size_t>(i - output_begin_);
  }
  Use& use(std::int32_t i, std::int16_t run) {
    return uses_[static_cast<std::size_t>(run) * static_cast<std::size_t>(input_end_ - input_begin_) +
                 static_cast<std::size_t>(i - input_begin_)];
  }

  template <typename... Args>
  bool refuse(fmt::format_string<Args...> format, Args&&... args) {
    why_ = fmt::format(format, std::forward<Args>(args)...);
    return false;
  }

  Place* find(Buffer buffer, std::int32_t i, std::int16_t run) {
    if (buffer == Buffer::output && i >= output_begin_ && i < output_end_) return &output_[at(i, run)];
    if (buffer == Buffer::scratch && i >= 0 && i < slots_) return &scratch_[static_cast<std::size_t>(i)];
    if (buffer == Buffer::scratch)
      refuse("slot {} of {} does not exist", i, slots_);
    else if (i < 0 || i >= rules_->space)
      refuse("chunk {} of {} does not exist", i, rules_->space);
    else
      refuse("this rank has no output[{}]", i);
    return nullptr;
  }

  bool load_input(std::int32_t i, std::int16_t lane, std::int16_t run, Value& value) {
    if (i < 0 || i >= rules_->space) return refuse("chunk {} of {} does not exist", i, rules_->space);
    if (i < input_begin_ || i >= input_end_) return refuse("this rank has no input[{}]", i);
    value = Value(i, Rank{rank_});
    if (!rules_->in_place) return true;
    if (i >= output_begin_ && i < output_end_) {
      const Place& place = output_[at(i, run)];
      if (place.value.chunk >= 0 && !same(place.value, value))
        return refuse("reads input[{}] after the output took its place", i);
    }
    Use& seen = use(i, run);
    seen.lane = seen.reads == 0 || seen.lane == lane ? lane : kSeveral;
    if (seen.reads < 2) ++seen.reads;
    return true;
  }

  // Moved values can be told by their names: the bytes are the same.
  static bool same(const Value& a, const Value& b) {
    if constexpr (Value::kReduces)
      return false;
    else
      return a.chunk == b.chunk && a.from == b.from;
  }

  // Whether the value has the length of its place, and may be there at all.
  bool belongs(Buffer buffer, std::int32_t i, const Value& value) {
    if (buffer == Buffer::scratch)
      return rules_->fits_slot(i, value.chunk) || refuse("puts chunk {} into slot {}, which has another length", value.chunk, i);
    if constexpr (!Value::kReduces) {
      if (rules_->collective == Collective::all_to_all) {  // any block is as long as any other
        if ((i - value.chunk) % rules_->chunks != 0) return refuse("puts chunk {} where chunk {} belongs", value.chunk, i);
        return true;
      }
      if (rules_->collective == Collective::all_to_all_v) {
        const Moved goal = rules_->goal(i, rank_);
        if (value.chunk != goal.chunk || value.from != goal.from)
          return refuse("puts chunk {} of rank {} where chunk {} of rank {} belongs", value.chunk, value.from, goal.chunk,
                        goal.from);
        return true;
      }
    }
    return value.chunk == i || refuse("puts chunk {} where chunk {} belongs", value.chunk, i);
  }

  bool may_overwrite(Buffer buffer, std::int32_t i, std::int16_t lane, std::int16_t run, const Value& value,
                     const Links<Value>& links, bool input_too) {
    // A finished sum came back: this rank's share of it has been read, and whatever message carried it was taken. If the input
    // was read once only, then nobody will need it any more.
    bool input_is_spent = false;
    if (input_too) {
      if (same(value, Value(i, Rank{rank_}))) return true;  // the very bytes that are there
      const Use& seen = use(i, run);
      input_is_spent = Value::kReduces && seen.reads == 1 && rules_->complete(value);
      if (seen.reads > 0 && seen.lane != lane && !input_is_spent)
        return refuse("overwrites input[{}], which another lane may not have read yet", i);
    }
    if (!rules_->by_reference) return true;
    const auto slot = buffer == Buffer::output ? at(i, run) : static_cast<std::size_t>(i);
    const Reference& reference = (buffer == Buffer::output ? output_references_ : scratch_references_)[slot];
    if (reference.message == 0) return true;
    const Link<Value>& link = links[reference.link];
    // The lane knows that a message was taken once it has sent another on the same link.
    if (link.posted != reference.message) return true;
    if (input_is_spent && output_[slot].value.chunk < 0) return true;  // it is the input that was sent
    return refuse("overwrites {}[{}] while a send to {} may still refer to it", name(buffer), i, link.to);
  }

  const Rules<Value>* rules_;
  std::int32_t rank_, slots_;
  std::int32_t input_begin_ = 0, input_end_ = 0, output_begin_ = 0, output_end_ = 0;  // the chunks that this rank has
  std::vector<Place> output_;                                                         // [run][chunk]
  std::vector<Place> scratch_;
  std::vector<Use> uses_;                                          // in place
  std::vector<Reference> output_references_, scratch_references_;  // by reference
  std::string why_;
};

}  // namespace shoal::plan::checker
