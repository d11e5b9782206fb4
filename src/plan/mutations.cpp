// SPDX-License-Identifier: Apache-2.0
#include "plan/mutations.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "plan/checker.h"

namespace shoal::plan {
namespace {

// One step of one rank's plan, to be spoilt.
struct Place {
  Plan& plan;
  Lane& lane;
  std::size_t loop_number, step_number;

  Loop& loop() const { return lane.loops[loop_number]; }
  Step& step() const { return loop().steps[step_number]; }
  bool first() const { return step_number == 0; }  // for what is done once a loop
  void erase() const { loop().steps.erase(loop().steps.begin() + static_cast<std::ptrdiff_t>(step_number)); }
};

// False: does not apply here, or would leave a plan that is right.
using Spoil = bool (*)(const Place&);

bool is_local(const Step& step) {
  return step.op == Op::copy || step.op == Op::reduce || step.op == Op::copy_shared || step.op == Op::reduce_shared;
}
// Doing it twice is doing it once.
bool may_repeat(const Step& step) { return step.op == Op::copy || step.op == Op::copy_shared || step.op == Op::reduce_shared; }

std::int32_t length_of(const Plan& plan, Buffer buffer) {
  switch (buffer) {
    case Buffer::none: return 0;
    case Buffer::input:
    case Buffer::output: return chunk_space(plan);
    case Buffer::scratch: return plan.scratch;
    case Buffer::shared: return plan.shared;
  }
  return 0;
}

bool shift(Chunk& chunk, const Plan& plan) {
  const std::int32_t length = length_of(plan, chunk.buffer);
  if (length < 2) return false;
  Rotating& index = chunk.index;
  if (index.stride != 0 && index.modulus > 1)
    index = {(index.start + 1) % index.modulus, index.stride, index.modulus, index.scale, index.base};
  else
    index.base += chunk.at(0, 0) + 1 < length ? 1 : -1;
  return true;
}

bool other_peer(Rotating& peer, const Place& place) {
  const std::int32_t world = place.plan.world.value;
  if (world < 3) return false;  // with two ranks there is no other peer
  std::int32_t to = peer.at(0);
  do to = (to + 1) % world;
  while (to == place.plan.rank.value);
  peer = fixed(to);
  return true;
}

bool turn(Rotating& index, const Loop& loop) {
  if (index.stride == 0 || loop.iterations < 2 || 2 * index.stride % index.modulus == 0) return false;
  index.stride = -index.stride;
  return true;
}

bool make_longer(Chunk& chunk) {
  if (chunk.size == 1) chunk.run = 2;
  ++chunk.size;
  return true;
}

bool drop(const Place& at) { return carries_data(at.step().op) && (at.erase(), true); }
bool drop_signal(const Place& at) { return !carries_data(at.step().op) && (at.erase(), true); }

bool repeat(const Place& at) {
  if (may_repeat(at.step())) return false;
  const Step twice = at.step();
  at.loop().steps.insert(at.loop().steps.begin() + static_cast<std::ptrdiff_t>(at.step_number), twice);
  return true;
}

bool iterate_less(const Place& at) { return at.first() && at.loop().iterations > 1 && (--at.loop().iterations, true); }
bool iterate_more(const Place& at) {
  if (!at.first() || at.loop().iterations < 2) return false;
  if (std::all_of(at.loop().steps.begin(), at.loop().steps.end(), may_repeat)) return false;
  ++at.loop().iterations;
  return true;
}

bool swap_to(const Place& at) { return sends(at.step().op) && other_peer(at.step().to, at); }
bool swap_from(const Place& at) {
  return (receives(at.step().op) || at.step().op == Op::copy_shared) && other_peer(at.step().from, at);
}
bool shift_source(const Place& at) { return at.step().source.buffer != Buffer::none && shift(at.step().source, at.plan); }
bool shift_target(const Place& at) { return at.step().target.buffer != Buffer::none && shift(at.step().target, at.plan); }
bool turn_source(const Place& at) { return at.step().source.buffer != Buffer::none && turn(at.step().source.index, at.loop()); }
bool turn_target(const Place& at) { return at.step().target.buffer != Buffer::none && turn(at.step().target.index, at.loop()); }

bool read_output(const Place& at) {
  if (at.step().source.buffer != Buffer::input) return false;
  // Where blocks keep their number, the output holds the same once it was copied there.
  const Collective c = at.plan.collective;
  if (!is_reduction(c) && c != Collective::all_to_all && c != Collective::all_to_all_v)
    for (std::size_t l = 0; l <= at.loop_number; ++l)
      for (const Step& step : at.lane.loops[l].steps) {
        if (&step == &at.step()) break;
        if (step.op == Op::copy && step.source.buffer == Buffer::input) return false;
      }
  at.step().source.buffer = Buffer::output;
  return true;
}

bool forget_to_reduce(const Place& at) {
  Step& step = at.step();
  switch (step.op) {
    case Op::recv_reduce:
      step.op = Op::recv;
      step.source = {};
      return true;
    case Op::recv_reduce_send:
      if (step.target.buffer == Buffer::none) return false;
      step.op = Op::recv_copy_send;
      step.source = {};
      return true;
    case Op::reduce: step.op = Op::copy; return true;
    case Op::reduce_shared:
      step.op = Op::copy_shared;
      step.from = fixed(0);
      return true;
    default: return false;
  }
}

bool flip_final(const Place& at) { return carries_data(at.step().op) && (at.step().final = !at.step().final, true); }

bool chunk_out_of_range(const Place& at) {
  if (!carries_data(at.step().op)) return false;
  Chunk& chunk = at.step().source.buffer != Buffer::none ? at.step().source : at.step().target;
  chunk.index = fixed(length_of(at.plan, chunk.buffer));
  chunk.wrap = 0;
  return true;
}
bool chunk_below_zero(const Place& at) {
  if (!carries_data(at.step().op)) return false;
  Chunk& chunk = at.step().target.buffer != Buffer::none ? at.step().target : at.step().source;
  chunk.index = fixed(-1);
  chunk.wrap = 0;
  return true;
}
bool peer_out_of_range(const Place& at) {
  Step& step = at.step();
  if (is_local(step)) return false;
  (sends(step.op) ? step.to : step.from) = fixed(at.plan.world.value);
  return true;
}
bool peer_is_self(const Place& at) {
  Step& step = at.step();
  if (is_local(step)) return false;
  (sends(step.op) ? step.to : step.from) = fixed(at.plan.rank.value);
  return true;
}

bool shorter(const Place& at) {
  Step& step = at.step();
  bool done = false;
  for (Chunk* chunk : {&step.source, &step.target})
    if (chunk->buffer != Buffer::none && chunk->size > 1) --chunk->size, done = true;
  return done;
}
bool longer(const Place& at) {
  Step& step = at.step();
  if (!carries_data(step.op)) return false;
  if (is_local(step)) return make_longer(step.source);  // alone: both may well be right
  for (Chunk* chunk : {&step.source, &step.target})
    if (chunk->buffer != Buffer::none) make_longer(*chunk);
  return true;
}

// A receive and the send of what it brought change places.
bool swap_neighbours(const Place& at) {
  std::vector<Step>& steps = at.loop().steps;
  if (at.step_number + 1 >= steps.size()) return false;
  Step& first = steps[at.step_number];
  Step& second = steps[at.step_number + 1];
  const bool brings = first.op == Op::recv || first.op == Op::recv_reduce;
  if (!brings || second.op != Op::send || first.target != second.source) return false;
  std::swap(first, second);
  return true;
}

bool other_channel(const Place& at) {
  if (!at.first() || at.loop_number != 0) return false;
  for (const Loop& loop : at.lane.loops)
    for (const Step& step : loop.steps)
      if (!is_local(step)) return at.lane.channel += 100, true;
  return false;
}

struct Mutation {
  std::string_view name;
  Spoil spoil;
};
constexpr Mutation kOfSteps[] = {
    {"drop a step", drop},
    {"drop a signal or a wait", drop_signal},
    {"repeat a step", repeat},
    {"one iteration less", iterate_less},
    {"one iteration more", iterate_more},
    {"swap the peer sent to", swap_to},
    {"swap the peer received from", swap_from},
    {"shift the source chunk", shift_source},
    {"shift the target chunk", shift_target},
    {"turn the source's rotation", turn_source},
    {"turn the target's rotation", turn_target},
    {"read the output, not the input", read_output},
    {"forget to reduce", forget_to_reduce},
    {"flip the final mark", flip_final},
    {"a chunk out of range", chunk_out_of_range},
    {"a chunk below zero", chunk_below_zero},
    {"a peer out of range", peer_out_of_range},
    {"a rank's own peer", peer_is_self},
    {"one chunk shorter", shorter},
    {"one chunk longer", longer},
    {"send before receive", swap_neighbours},
    {"another channel", other_channel},
};
constexpr std::size_t kStepMutations = std::size(kOfSteps);

// Of whole plan sets.
enum WholeMutation : std::size_t { missing_credit = kStepMutations, slot_less, slot_more, wrong_root };
static_assert(wrong_root + 1 == kMutations);

constexpr auto kNames = [] {
  std::array<std::string_view, kMutations> names{};
  for (std::size_t m = 0; m < kStepMutations; ++m) names[m] = kOfSteps[m].name;
  names[missing_credit] = "a credit less";
  names[slot_less] = "a slot less";
  names[slot_more] = "a slot more";
  names[wrong_root] = "another root on one rank";
  return names;
}();

bool communicates(std::span<const Plan> plans) {
  for (const Plan& plan : plans)
    for (const Lane& lane : plan.lanes)
      for (const Loop& loop : lane.loops)
        for (const Step& step : loop.steps)
          if (sends(step.op)) return true;
  return false;
}

// All mutations of one plan set.
class Spoiler {
 public:
  Spoiler(const Subject& subject, World world, MutationRow& row, std::size_t most_survivors)
      : subject_(subject), world_(world), row_(row), most_survivors_(most_survivors) {
    root_ = {has_root(subject.collective) ? 1 : 0};
    plans_ = build_all(subject, world, root_);
  }

  void all() {
    if (!plans_[0].refusal.empty()) return;
    if (Status s = check_all_modes(plans_); !s.is_ok()) {  // wrong as it is
      row_.survivors.push_back(fmt::format("not spoilt at all: {}", s.text()));
      return;
    }
    for (std::size_t r = 0; r < plans_.size(); ++r) spoil_steps(r);
    spoil_credits();
    spoil_slots();
    spoil_roots();
  }

 private:
  void spoil_steps(std::size_t r) {
    const Plan good = plans_[r];
    for (std::size_t l = 0; l < good.lanes.size(); ++l)
      for (std::size_t b = 0; b < good.lanes[l].loops.size(); ++b)
        for (std::size_t s = 0; s < good.lanes[l].loops[b].steps.size(); ++s)
          for (std::size_t m = 0; m < kStepMutations; ++m) {
            if (kOfSteps[m].spoil({plans_[r], plans_[r].lanes[l], b, s}))
              count(m, check_all_modes(plans_), [&] {
                return fmt::format("rank {}, lane {}, loop {}, step {} ({})", r, l, b, s,
                                   describe(good.lanes[l].loops[b].steps[s], 0));
              });
            else
              continue;
            plans_[r] = good;
          }
  }

  void spoil_credits() {
    if (communicates(plans_))
      count(missing_credit, check(plans_, {.credits_delta = -1}), [&] { return fmt::format("of {}", plans_[0].credits); });
  }

  void spoil_slots() {
    const std::vector<Plan> good = plans_;
    for (std::int32_t Plan::*slots : {&Plan::scratch, &Plan::shared}) {
      for (Plan& plan : plans_) ++(plan.*slots);
      count(slot_more, check_all_modes(plans_), [] { return std::string("on all ranks"); });
      plans_ = good;
      if (std::none_of(good.begin(), good.end(), [&](const Plan& plan) { return plan.*slots > 0; })) continue;
      for (Plan& plan : plans_) plan.*slots = std::max(0, plan.*slots - 1);
      count(slot_less, check_all_modes(plans_), [] { return std::string("on all ranks"); });
      plans_ = good;
    }
  }

  // One rank has the plan for another root, but does not know.
  void spoil_roots() {
    if (!has_root(subject_.collective)) return;
    for (std::size_t r = 0; r < plans_.size(); ++r)
      for (std::int32_t root = 0; root < world_.value; ++root) {
        Plan other = subject_.build(
            {.collective = subject_.collective, .world = world_, .rank = {static_cast<std::int32_t>(r)}, .root = {root}});
        if (same_program(other, plans_[r])) continue;
        other.root = root_;
        std::swap(plans_[r], other);
        count(wrong_root, check_all_modes(plans_), [&] { return fmt::format("rank {} takes {} for the root", r, root); });
        std::swap(plans_[r], other);
      }
  }

  template <typename Where>
  void count(std::size_t mutation, const Status& status, Where&& where) {
    MutationCount& count = row_.counts[mutation];
    ++count.applied;
    if (!status.is_ok())
      ++count.caught;
    else if (row_.survivors.size() < most_survivors_)
      row_.survivors.push_back(fmt::format("{}, world {}: {}: {}", title(subject_), world_.value, kNames[mutation], where()));
  }

  const Subject& subject_;
  World world_;
  Rank root_;
  MutationRow& row_;
  std::size_t most_survivors_;
  std::vector<Plan> plans_;
};

}  // namespace

std::span<const std::string_view> mutation_names() { return kNames; }

std::vector<MutationRow> mutate(std::span<const Subject> subjects, const MutationOptions& options) {
  std::vector<MutationRow> rows(subjects.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {  // a row belongs to the thread that takes it
    for (std::size_t s = next++; s < subjects.size(); s = next++) {
      rows[s].subject = title(subjects[s]);
      for (const std::int32_t world : options.worlds) Spoiler(subjects[s], {world}, rows[s], options.most_survivors).all();
    }
  };
  const unsigned wanted =
      options.threads > 0 ? static_cast<unsigned>(options.threads) : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < wanted; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return rows;
}

std::string mutation_table(std::span<const MutationRow> rows) {
  std::string text;
  for (std::size_t m = 0; m < kMutations; ++m) text += fmt::format("{:>3}  {}\n", m + 1, kNames[m]);
  text += fmt::format("\n{:32}", "caught/applied");
  for (std::size_t m = 0; m < kMutations; ++m) text += fmt::format(" {:>9}", m + 1);
  text += "\n";
  for (const MutationRow& row : rows) {
    text += fmt::format("{:32}", row.subject);
    for (const MutationCount& count : row.counts)
      text += fmt::format(" {:>9}", count.applied == 0 ? "-" : fmt::format("{}/{}", count.caught, count.applied));
    text += "\n";
  }
  return text;
}

}  // namespace shoal::plan
