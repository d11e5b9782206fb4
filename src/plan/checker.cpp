// SPDX-License-Identifier: Apache-2.0
#include "plan/checker.h"

#include <deque>
#include <map>
#include <optional>

#include "plan/contributions.h"

namespace shoal::plan {
namespace {

// The channel from one rank to another on one lane.
struct LinkId {
  std::int32_t from, to;
  std::size_t lane;
  friend auto operator<=>(const LinkId&, const LinkId&) = default;
};

struct Wire {
  std::deque<Value> values;
  std::uint64_t posted = 0;  // messages ever sent on it
};

// One output chunk of one slice.
struct Cell {
  Value value;
  int lane = -1;  // the only lane that may touch it
  // By reference: the last send that refers to this memory, and which message of its link that was.
  const LinkId* referred_by = nullptr;
  std::uint64_t message = 0;
};

// Where a lane stands.
struct Cursor {
  int slice = 0;
  std::size_t loop = 0, step = 0;
  std::int32_t iteration = 0;
  int executed = 0;               // steps, for messages
  std::optional<Value> received;  // by reference: a fused step has received, and has yet to send on
};

class Run {
 public:
  Run(std::span<const Plan> plans, const CheckOptions& options) : plans_(plans), options_(options) {}

  Status whole() {
    if (Status s = shape(); !s.is_ok()) return s;
    prepare();
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t r = 0; r < plans_.size(); ++r)
        for (std::size_t l = 0; l < plans_[r].lanes.size(); ++l) {
          Result<bool> progressed = run_lane(r, l);
          if (!progressed.is_ok()) return progressed.status();
          moved |= *progressed;
        }
    }
    return verdict();
  }

 private:
  World world() const { return plans_.front().world; }

  Status shape() const {
    if (plans_.empty()) return fail(Code::invalid_argument, "check: no plans");
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      const Plan& plan = plans_[r];
      if (plan.world.value != static_cast<std::int32_t>(plans_.size()) || plan.rank.value != static_cast<std::int32_t>(r))
        return fail(Code::internal_error, "plan {} of {} says it is rank {} of {}", r, plans_.size(), plan.rank.value,
                    plan.world.value);
      if (plan.chunks != plans_[0].chunks || plan.chunks < 1 || plan.lanes.size() != plans_[0].lanes.size())
        return fail(Code::internal_error, "rank {}: {} chunks in {} lanes, rank 0: {} in {}", r, plan.chunks, plan.lanes.size(),
                    plans_[0].chunks, plans_[0].lanes.size());
    }
    return {};
  }

  void prepare() {
    const auto chunks = static_cast<std::size_t>(plans_[0].chunks);
    cells_.assign(plans_.size(),
                  std::vector<std::vector<Cell>>(static_cast<std::size_t>(options_.slices), std::vector<Cell>(chunks)));
    cursors_.resize(plans_.size());
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      cursors_[r].resize(plans_[r].lanes.size());
      for (std::size_t l = 0; l < plans_[r].lanes.size(); ++l) skip_empty(plans_[r].lanes[l], cursors_[r][l]);
    }
  }

  bool finished(std::size_t r, std::size_t l) const { return cursors_[r][l].slice == options_.slices; }

  // Past loops without steps or iterations, and on to the next slice.
  void skip_empty(const Lane& lane, Cursor& at) const {
    while (at.slice < options_.slices) {
      while (at.loop < lane.loops.size() && (lane.loops[at.loop].steps.empty() || lane.loops[at.loop].iterations <= 0)) ++at.loop;
      if (at.loop < lane.loops.size()) return;
      at.loop = 0;
      ++at.slice;
    }
  }

  void advance(const Lane& lane, Cursor& at) const {
    ++at.executed;
    if (++at.step < lane.loops[at.loop].steps.size()) return;
    at.step = 0;
    if (++at.iteration < lane.loops[at.loop].iterations) return;
    at.iteration = 0;
    ++at.loop;
    skip_empty(lane, at);
  }

  Result<bool> run_lane(std::size_t r, std::size_t l) {
    bool moved = false;
    while (!finished(r, l)) {
      Cursor& at = cursors_[r][l];
      const Lane& lane = plans_[r].lanes[l];
      const Step& step = lane.loops[at.loop].steps[at.step];
      Result<bool> done = execute(r, l, step, at);
      if (!done.is_ok()) return done;
      if (!*done) break;
      advance(lane, at);
      moved = true;
    }
    return moved;
  }

  template <typename... Args>
  Status wrong(std::size_t r, const Step& step, const Cursor& at, fmt::format_string<Args...> format, Args&&... args) const {
    return fail(Code::internal_error, "{} of {} ranks: rank {}, step {} ({}): {}", plans_[r].algorithm, plans_.size(), r,
                at.executed, describe(step, at.iteration), fmt::format(format, std::forward<Args>(args)...));
  }

  // False: blocked.
  Result<bool> execute(std::size_t r, std::size_t l, const Step& step, Cursor& at) {
    if (Status s = operands(r, step, at); !s.is_ok()) return s;
    const auto rank = static_cast<std::int32_t>(r);
    const LinkId out{rank, sends(step.op) ? step.to.at(at.iteration) : rank, l};
    const bool room = !sends(step.op) || wires_[out].values.size() < capacity(r);
    // Through wire memory a fused step needs a message and room at once. With links that hold nothing it first receives into
    // its own memory (a value that is only sent on, into its place of the output) and then sends from there.
    const bool two_halves = options_.links == LinkMode::by_reference && receives(step.op) && sends(step.op);
    if (!two_halves && !room) return false;

    Chunk kept = step.target;
    if (two_halves && kept.buffer == Buffer::none) kept = output(step.source.index);
    if (!at.received) {
      Wire* in = receives(step.op) ? &wires_[{step.from.at(at.iteration), rank, l}] : nullptr;
      if (in != nullptr && in->values.empty()) return false;
      Result<Value> result = combine(r, l, step, at, in);
      if (!result.is_ok()) return result.status();
      if (kept.buffer != Buffer::none)
        if (Status s = store(r, l, step, at, kept, *result); !s.is_ok()) return s;
      if (in != nullptr) in->values.pop_front();
      at.received = result.take();
    }
    if (!room) return false;
    if (sends(step.op)) post(r, at, out, kept.buffer != Buffer::none ? kept : step.source, *at.received);
    at.received.reset();
    return true;
  }

  std::size_t capacity(std::size_t r) const {
    return options_.links == LinkMode::by_reference ? 1 : static_cast<std::size_t>(plans_[r].credits < 0 ? 0 : plans_[r].credits);
  }

  Status operands(std::size_t r, const Step& step, const Cursor& at) const {
    const auto peer_ok = [&](const Rotating& peer) {
      const std::int32_t value = peer.at(at.iteration);
      return value >= 0 && value < world().value && value != static_cast<std::int32_t>(r);
    };
    if (receives(step.op) && !peer_ok(step.from)) return wrong(r, step, at, "there is no such peer to receive from");
    if (sends(step.op) && !peer_ok(step.to)) return wrong(r, step, at, "there is no such peer to send to");
    for (const Chunk* chunk : {&step.source, &step.target}) {
      const std::int32_t index = chunk->index.at(at.iteration);
      if (chunk->buffer != Buffer::none && (index < 0 || index >= plans_[r].chunks))
        return wrong(r, step, at, "chunk {} of {} does not exist", index, plans_[r].chunks);
    }
    const bool needs_source = step.op == Op::copy || step.op == Op::send || reduces(step.op);
    const bool needs_target =
        step.op == Op::copy || step.op == Op::recv || step.op == Op::recv_reduce || step.op == Op::recv_copy_send;
    if (needs_source != (step.source.buffer != Buffer::none)) return wrong(r, step, at, "the source is missing or too much");
    if (needs_target && step.target.buffer == Buffer::none) return wrong(r, step, at, "the target is missing");
    if (step.target.buffer == Buffer::input) return wrong(r, step, at, "writes into the input");
    return {};
  }

  Cell& cell(std::size_t r, const Cursor& at, const Chunk& chunk) {
    return cells_[r][static_cast<std::size_t>(at.slice)][static_cast<std::size_t>(chunk.index.at(at.iteration))];
  }

  Result<Value> load(std::size_t r, std::size_t l, const Step& step, const Cursor& at) {
    Cell& place = cell(r, at, step.source);
    const std::int32_t index = step.source.index.at(at.iteration);
    if (step.source.buffer == Buffer::input) {
      if (options_.in_place && place.value.chunk >= 0)
        return wrong(r, step, at, "reads input[{}] after the output took its place", index);
      return Value{index, Contributions(world(), Rank{static_cast<std::int32_t>(r)}), false};
    }
    if (place.value.chunk < 0) return wrong(r, step, at, "reads output[{}] before anything was written there", index);
    if (place.lane != static_cast<int>(l))
      return wrong(r, step, at, "lanes {} and {} both touch output[{}]", place.lane, l, index);
    return place.value;
  }

  // The value that the step makes.
  Result<Value> combine(std::size_t r, std::size_t l, const Step& step, const Cursor& at, const Wire* in) {
    Value value;
    if (step.source.buffer != Buffer::none) {
      Result<Value> local = load(r, l, step, at);
      if (!local.is_ok()) return local;
      value = *local;
    }
    if (in != nullptr) {
      const Value& arrived = in->values.front();
      if (!reduces(step.op)) {
        value = arrived;
      } else {
        if (arrived.chunk != value.chunk) return wrong(r, step, at, "adds chunk {} to chunk {}", arrived.chunk, value.chunk);
        if (const auto twice = value.from.common(arrived.from))
          return wrong(r, step, at, "counts the input of rank {} twice", twice->value);
        if (value.final || arrived.final) return wrong(r, step, at, "adds to a finished sum");
        value.from.add(arrived.from);
      }
    }
    const bool full = value.from.size() == world().value;
    if (step.final && (value.final || !full))
      return wrong(r, step, at, "is marked final with {} of {} contributions{}", value.from.size(), world().value,
                   value.final ? ", again" : "");
    if (reduces(step.op) && full && !step.final) return wrong(r, step, at, "completes the sum but is not marked final");
    value.final |= step.final;
    return value;
  }

  Status store(std::size_t r, std::size_t l, const Step& step, const Cursor& at, const Chunk& target, const Value& value) {
    const std::int32_t index = target.index.at(at.iteration);
    if (value.chunk != index) return wrong(r, step, at, "puts chunk {} where chunk {} belongs", value.chunk, index);
    Cell& place = cell(r, at, target);
    if (place.lane >= 0 && place.lane != static_cast<int>(l))
      return wrong(r, step, at, "lanes {} and {} both touch output[{}]", place.lane, l, index);
    // The lane knows that a referred message was taken once it has sent another on the same link.
    if (place.referred_by != nullptr && wires_[*place.referred_by].posted == place.message)
      return wrong(r, step, at, "overwrites output[{}] while a send to {} may still refer to it", index, place.referred_by->to);
    place.value = value;
    place.lane = static_cast<int>(l);
    return {};
  }

  void post(std::size_t r, const Cursor& at, const LinkId& id, const Chunk& source, const Value& value) {
    const auto wire = wires_.try_emplace(id).first;
    wire->second.values.push_back(value);
    ++wire->second.posted;
    const bool in_output_memory = source.buffer == Buffer::output || (source.buffer == Buffer::input && options_.in_place);
    if (options_.links == LinkMode::by_reference && in_output_memory) {
      Cell& place = cell(r, at, source);
      place.referred_by = &wire->first;
      place.message = wire->second.posted;
    }
  }

  Status verdict() const {
    std::string blocked;
    for (std::size_t r = 0; r < plans_.size(); ++r)
      for (std::size_t l = 0; l < plans_[r].lanes.size(); ++l)
        if (!finished(r, l)) {
          const Cursor& at = cursors_[r][l];
          const Step& step = plans_[r].lanes[l].loops[at.loop].steps[at.step];
          if (blocked.size() < 400)
            blocked += fmt::format("; rank {} at step {} ({})", r, at.executed, describe(step, at.iteration));
        }
    if (!blocked.empty())
      return fail(
          Code::internal_error, "{} of {} ranks: deadlock with {}{}", plans_[0].algorithm, plans_.size(),
          options_.links == LinkMode::by_reference ? "links that hold nothing" : fmt::format("{} credits", plans_[0].credits),
          blocked);
    for (const auto& [id, wire] : wires_)
      if (!wire.values.empty())
        return fail(Code::internal_error, "{} of {} ranks: rank {} never receives {} messages from rank {}", plans_[0].algorithm,
                    plans_.size(), id.to, wire.values.size(), id.from);
    for (std::size_t r = 0; r < cells_.size(); ++r)
      for (const auto& slice : cells_[r])
        for (std::size_t c = 0; c < slice.size(); ++c)
          if (!slice[c].value.final)
            return fail(Code::internal_error, "{} of {} ranks: output[{}] of rank {} ends with {} of {} contributions{}",
                        plans_[0].algorithm, plans_.size(), c, r, slice[c].value.from.size(), world().value,
                        slice[c].value.from.size() == world().value ? ", not marked final" : "");
    return {};
  }

  std::span<const Plan> plans_;
  CheckOptions options_;
  std::vector<std::vector<std::vector<Cell>>> cells_;  // [rank][slice][chunk]
  std::vector<std::vector<Cursor>> cursors_;           // [rank][lane]
  std::map<LinkId, Wire> wires_;                       // node addresses stay valid
};

}  // namespace

Status check(std::span<const Plan> plans, const CheckOptions& options) { return Run(plans, options).whole(); }

Status check_all_modes(std::span<const Plan> plans) {
  for (const bool in_place : {false, true}) {
    if (Status s = check(plans, {LinkMode::eager, in_place}); !s.is_ok()) return s;
    if (!plans.empty() && plans[0].by_reference)
      if (Status s = check(plans, {LinkMode::by_reference, in_place}); !s.is_ok()) return s;
  }
  return {};
}

}  // namespace shoal::plan
