// SPDX-License-Identifier: Apache-2.0
// One symbolic run of all ranks' plans: lanes run until they have to wait for a message or for room, and whoever makes one or the
// other sets them going again. Plans are Kahn networks: the order in which lanes are taken does not matter. Used by one thread.
#pragma once

#include <algorithm>

#include "plan/checker.h"
#include "plan/checker/verdict.h"

namespace shoal::plan::checker {

template <typename Value>
class Run {
 public:
  Run(std::span<const Plan> plans, const CheckOptions& options)
      : plans_(plans), first_(plans[0]), links_(plans.size()), by_reference_(options.links == LinkMode::by_reference) {
    // Two sets of shared slots are used in turn: what comes round again shows in the third run and the fourth.
    const int runs = std::max(options.slices, first_.shared > 0 ? 4 : 1);
    rules_ = {.collective = first_.collective,
              .world = first_.world.value,
              .root = first_.root.value,
              .chunks = first_.chunks,
              .space = chunk_space(first_),
              .runs = static_cast<std::int16_t>(runs),
              .in_place = options.in_place && has_in_place(first_.collective),
              .by_reference = by_reference_,
              .whole = {}};
    if constexpr (Value::kReduces) rules_.whole.from = decltype(rules_.whole.from)::all(first_.world);
    credits_ = std::max(0, first_.credits + options.credits_delta);
    butterfly_ = first_.order == Order::butterfly ? butterfly_order(first_.world) : 0;
  }

  Status whole() {
    prepare();
    while (waiting_ > 0 && failure_.is_ok()) {
      Lane& lane = lanes_[ready_[next_]];
      next_ = next_ + 1 == ready_.size() ? 0 : next_ + 1;
      --waiting_;
      lane.queued = false;
      run(lane);
    }
    if (failure_.is_ok()) end();
    return std::move(failure_);
  }

 private:
  // Where a lane stands.
  struct Lane {
    const plan::Lane* program = nullptr;
    std::uint32_t loop = 0, step = 0;
    std::int32_t rank = 0, iteration = 0;
    std::int16_t number = 0, run = 0;
    bool queued = true, done = false;
    std::int64_t executed = 0;  // steps

    const Step& current() const { return program->loops[loop].steps[step]; }
  };

  void prepare() {
    const std::size_t world = plans_.size();
    first_lane_.reserve(world);
    memories_.reserve(world);
    if (first_.shared > 0 || first_.collective == Collective::barrier) {
      clocks_ = Clocks(world);
      entered_.assign(world * static_cast<std::size_t>(rules_.runs), 0);
      for (const Plan& plan : plans_)
        if (plan.lanes.size() > 1) {
          failure_ = fail(Code::internal_error, "{}: rank {} has {} lanes, but signals order one lane only", title(first_),
                          plan.rank.value, plan.lanes.size());
          return;
        }
    }
    if (first_.shared > 0) shared_ = SharedSlots<Value>(world, first_.shared);
    for (const Plan& plan : plans_) {
      first_lane_.push_back(static_cast<std::uint32_t>(lanes_.size()));
      memories_.emplace_back(plan, rules_);
      for (std::size_t l = 0; l < plan.lanes.size(); ++l) {
        Lane& lane = lanes_.emplace_back();
        lane.program = &plan.lanes[l];
        lane.rank = plan.rank.value;
        lane.number = static_cast<std::int16_t>(l);
      }
    }
    if (clocks_.on())
      for (Lane& lane : lanes_) {
        clocks_.tick(rank(lane));
        entered_[rank(lane)] = 1;
      }
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
      ready_.push_back(static_cast<std::uint32_t>(l));
      settle(lanes_[l]);
    }
    waiting_ = lanes_.size();
  }

  static std::size_t rank(const Lane& lane) { return static_cast<std::size_t>(lane.rank); }

  // Past loops without steps or iterations, and on to the next run.
  void settle(Lane& at) {
    const std::vector<Loop>& loops = at.program->loops;
    while (true) {
      while (at.loop < loops.size() && (loops[at.loop].steps.empty() || loops[at.loop].iterations <= 0)) ++at.loop;
      if (at.loop < loops.size()) return;
      if (first_.collective == Collective::barrier && !has_heard_of_all(at)) return;
      at.loop = 0;
      if (++at.run == rules_.runs) {
        at.done = true;
        return;
      }
      if (clocks_.on()) entered_[static_cast<std::size_t>(at.run) * plans_.size() + rank(at)] = clocks_.now(rank(at));
    }
  }

  bool has_heard_of_all(const Lane& at) {
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      const std::uint32_t entry = entered_[static_cast<std::size_t>(at.run) * plans_.size() + r];
      if (entry != 0 && clocks_.known(rank(at), r) >= entry) continue;
      failure_ = fail(Code::internal_error, "{}: rank {} ends without having heard of rank {}", title(first_), at.rank, r);
      return false;
    }
    return true;
  }

  void run(Lane& at) {
    while (!at.done) {
      if (!execute(at, at.current())) return;
      ++at.executed;
      if (clocks_.on()) clocks_.tick(rank(at));
      const Loop& loop = at.program->loops[at.loop];
      if (++at.step < loop.steps.size()) continue;
      at.step = 0;
      if (++at.iteration < loop.iterations) continue;
      at.iteration = 0;
      ++at.loop;
      settle(at);
      if (!failure_.is_ok()) return;
    }
  }

  void wake(std::int32_t rank, std::int16_t lane) {
    const std::uint32_t l = first_lane_[static_cast<std::size_t>(rank)] + static_cast<std::uint32_t>(lane);
    if (lanes_[l].queued) return;
    lanes_[l].queued = true;
    const std::size_t end = next_ + waiting_++;
    ready_[end < ready_.size() ? end : end - ready_.size()] = l;
  }

  template <typename... Args>
  bool wrong(const Lane& at, fmt::format_string<Args...> format, Args&&... args) {
    const Plan& plan = plans_[rank(at)];
    failure_ =
        fail(Code::internal_error, "{}: {}, step {} ({}): {}", title(plan), title(plan, static_cast<std::size_t>(at.number)),
             at.executed, describe(at.current(), at.iteration), fmt::format(format, std::forward<Args>(args)...));
    return false;
  }

  bool peer_exists(std::int32_t peer, const Lane& at) const { return peer >= 0 && peer < rules_.world && peer != at.rank; }

  // False: has to wait, or failure_.
  bool execute(Lane& at, const Step& step) {
    Link<Value>*in = nullptr, *out = nullptr;
    LinkId out_id;
    if (receives(step.op)) {
      const std::int32_t from = step.from.at(at.iteration);
      if (!peer_exists(from, at)) return wrong(at, "there is no such peer to receive from");
      in = &links_[links_.between(from, at.rank, at.program->channel)];
      if (!owns(at, in->receiver, *in, "receive from", from)) return false;
      if (in->held == 0) {
        in->receiver_waits = true;
        return false;
      }
      if (in->referred && in->held == 1) {  // a look at the message takes it out of the sender's memory
        in->referred = false;
        make_room(*in);
      }
    }
    if (sends(step.op)) {
      const std::int32_t to = step.to.at(at.iteration);
      if (!peer_exists(to, at)) return wrong(at, "there is no such peer to send to");
      out_id = links_.between(at.rank, to, at.program->channel);
      out = &links_[out_id];
      if (!owns(at, out->sender, *out, "send to", to)) return false;
      if (out->held >= credits_ || out->referred) {
        out->sender_waits = true;
        return false;
      }
    }
    return carries_data(step.op) ? move_data(at, step, in, out, out_id) : move_signal(at, in, out);
  }

  bool owns(const Lane& at, std::int16_t& end, const Link<Value>& link, std::string_view verb, std::int32_t peer) {
    if (end < 0) end = at.number;
    return end == at.number ||
           wrong(at, "lanes {} and {} both {} rank {} on channel {}", end, at.number, verb, peer, link.channel);
  }

  void make_room(Link<Value>& link) {
    if (!link.sender_waits) return;
    link.sender_waits = false;
    wake(link.from, link.sender);
  }

  bool fits(const Lane& at, const Message<Value>& message, std::int32_t size) {
    if (message.size != size) return wrong(at, "a message of {} chunks arrives, not of {}", message.size, size);
    return message.run == at.run || wrong(at, "a message of run {} arrives in run {}", message.run, at.run);
  }

  // Data may turn out to be empty, and then no message is sent: only signals prove that something has happened.
  bool has_news(const Message<Value>& message) const { return clocks_.on() && message.size == 0; }

  void take(Lane& at, Link<Value>& in) {
    if (has_news(in.first)) clocks_.hear(rank(at), links_.clocks(in.first));
    links_.pop(in);
    make_room(in);
  }

  Message<Value>& prepare(const Lane& at, Link<Value>& out, std::int32_t size) {
    Message<Value>& message = links_.prepare(out, size, clocks_.on() && size == 0);
    message.run = at.run;
    return message;
  }

  void post(const Lane& at, Link<Value>& out, Message<Value>& message) {
    if (has_news(message)) {
      const auto known = clocks_.of(rank(at));
      links_.clocks(message).assign(known.begin(), known.end());
    }
    links_.push(out);
    if (!out.receiver_waits) return;
    out.receiver_waits = false;
    wake(out.to, out.receiver);
  }

  bool move_signal(Lane& at, Link<Value>* in, Link<Value>* out) {
    if (in != nullptr) {
      if (!fits(at, in->first, 0)) return false;
      take(at, *in);
    }
    if (out != nullptr) post(at, *out, prepare(at, *out, 0));
    return true;
  }

  bool move_data(Lane& at, const Step& step, Link<Value>* in, Link<Value>* out, LinkId out_id) {
    const bool has_source = step.source.buffer != Buffer::none, has_target = step.target.buffer != Buffer::none;
    const std::int32_t size = has_source ? step.source.size : step.target.size;
    if (in != nullptr && !fits(at, in->first, size)) return false;
    const Value* const arrived = in != nullptr ? links_.values(in->first) : nullptr;
    Message<Value>* const sent = out != nullptr ? &prepare(at, *out, size) : nullptr;
    Value* const leaving = sent != nullptr ? links_.values(*sent) : nullptr;
    for (std::int32_t t = 0; t < size; ++t) {
      Value value;
      if (has_source && !load(at, step, t, value)) return false;
      if (arrived != nullptr) {
        if (!reduces(step.op))
          value = arrived[t];
        else if (!add(at, value, arrived[t]))
          return false;
      }
      if (step.op == Op::reduce) {
        Value local;
        Memory<Value>& memory = memories_[rank(at)];
        const std::int32_t place = step.target.at(t, at.iteration);
        const bool loaded =
            step.target.buffer == Buffer::shared
                ? shared_read(at, at.rank, place, local)
                : memory.load(step.target.buffer, place, at.number, at.run, local) || wrong(at, "{}", memory.why());
        if (!loaded || !add(at, value, local)) return false;
      }
      if (!finish(at, step, value)) return false;
      if (has_target && !store(at, step.target.buffer, step.target.at(t, at.iteration), value)) return false;
      if (leaving != nullptr) leaving[t] = value;
    }
    if (in != nullptr) take(at, *in);
    if (out != nullptr) {
      post(at, *out, *sent);
      const Chunk& memory = in != nullptr ? step.target : step.source;  // what may be sent from where it lies
      if (by_reference_ && size == 1 && memory.buffer != Buffer::none && memory.buffer != Buffer::shared) {
        out->referred = true;
        memories_[rank(at)].refer(memory.buffer, memory.at(0, at.iteration), at.run, out_id, out->posted);
      }
    }
    return true;
  }

  bool load(Lane& at, const Step& step, std::int32_t t, Value& value) {
    const std::int32_t i = step.source.at(t, at.iteration);
    if (step.op == Op::copy_shared) {
      const std::int32_t from = step.from.at(at.iteration);
      if (from < 0 || from >= rules_.world) return wrong(at, "there is no such peer to read from");
      return shared_read(at, from, i, value);
    }
    if (step.op == Op::reduce_shared) {
      if (!shared_read(at, 0, i, value)) return false;
      for (std::int32_t r = 1; r < rules_.world; ++r) {
        Value next;
        if (!shared_read(at, r, i, next) || !add(at, value, next)) return false;
      }
      return true;
    }
    if (step.source.buffer == Buffer::shared) return shared_read(at, at.rank, i, value);
    Memory<Value>& memory = memories_[rank(at)];
    return memory.load(step.source.buffer, i, at.number, at.run, value) || wrong(at, "{}", memory.why());
  }

  bool shared_read(const Lane& at, std::int32_t owner, std::int32_t slot, Value& value) {
    return shared_.read(rank(at), static_cast<std::size_t>(owner), slot, at.run, clocks_, value) ||
           wrong(at, "{}", shared_.why());
  }

  bool store(const Lane& at, Buffer buffer, std::int32_t i, const Value& value) {
    if (buffer == Buffer::shared) {
      if (!rules_.fits_slot(i, value.chunk))
        return wrong(at, "puts chunk {} into slot {}, which has another length", value.chunk, i);
      return shared_.write(rank(at), i, at.run, value, clocks_) || wrong(at, "{}", shared_.why());
    }
    Memory<Value>& memory = memories_[rank(at)];
    return memory.store(buffer, i, at.number, at.run, value, links_) || wrong(at, "{}", memory.why());
  }

  bool add(const Lane& at, Value& value, const Value& other) {
    if constexpr (Value::kReduces) {
      if (other.chunk != value.chunk) return wrong(at, "adds chunk {} to chunk {}", other.chunk, value.chunk);
      if (value.from.overlaps(other.from)) return wrong(at, "counts the input of rank {} twice", value.from.common(other.from));
      if (value.final || other.final) return wrong(at, "adds to a finished sum");
      value.from.add(other.from);
      value.order = order_of_sum(value.order, other.order);
    }
    return true;
  }

  // The mark of a finished sum belongs to the step that completes it, and to no other.
  bool finish(const Lane& at, const Step& step, Value& value) {
    if constexpr (Value::kReduces) {
      if (!step.final && !reduces(step.op)) return true;
      const bool complete = rules_.complete(value);
      if (step.final && (value.final || !complete))
        return wrong(at, "is marked final with {}{}", value.from.describe(first_.world), value.final ? ", again" : "");
      if (complete && !step.final) return wrong(at, "completes the sum but is not marked final");
      value.final = step.final;
      if (step.final && first_.order == Order::butterfly && value.order != butterfly_)
        return wrong(at, "adds in another order than the butterfly that it promises");
    }
    return true;
  }

  void end() {
    std::string blocked;
    for (const Lane& at : lanes_)
      if (!at.done && blocked.size() < 400)
        blocked += fmt::format("; {} at step {} ({})", title(plans_[rank(at)], static_cast<std::size_t>(at.number)), at.executed,
                               describe(at.current(), at.iteration));
    if (!blocked.empty()) {
      failure_ = fail(Code::internal_error, "{}: deadlock with {} credits{}{}", title(first_), credits_,
                      by_reference_ ? ", by reference" : "", blocked);
      return;
    }
    failure_ = verdict(plans_, rules_, links_, memories_, shared_);
  }

  std::span<const Plan> plans_;
  const Plan& first_;
  Rules<Value> rules_;
  Links<Value> links_;
  Clocks clocks_;                       // only where signals prove something
  std::vector<std::uint32_t> entered_;  // [run][rank]: the rank's clock when it began; 0: it has not
  SharedSlots<Value> shared_;
  std::vector<Memory<Value>> memories_;    // [rank]
  std::vector<Lane> lanes_;                // of all ranks
  std::vector<std::uint32_t> first_lane_;  // [rank]
  // Lanes that may be able to move, in turn: who comes late finds more to do at once. A ring, in which each has room.
  std::vector<std::uint32_t> ready_;
  std::size_t next_ = 0, waiting_ = 0;
  std::int32_t credits_ = 0;
  bool by_reference_;
  std::uint64_t butterfly_ = 0;
  Status failure_;
};

}  // namespace shoal::plan::checker
