// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/schedule.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "train/error.h"

namespace shoal::train {
namespace {

struct Named {
  ScheduleKind kind;
  std::string_view name;
};
constexpr std::array kNames = {Named{ScheduleKind::gpipe, "gpipe"}, Named{ScheduleKind::one_f_one_b, "1f1b"},
                               Named{ScheduleKind::interleaved, "interleaved"}, Named{ScheduleKind::zero_bubble, "zero-bubble"}};

using Actions = std::vector<Action>;

Actions gpipe(std::size_t micro_batches) {
  Actions actions;
  for (std::size_t i = 0; i < micro_batches; ++i) actions.push_back({ActionKind::forward, i});
  for (std::size_t i = 0; i < micro_batches; ++i) actions.push_back({ActionKind::backward, i});
  return actions;
}

// As many forwards ahead as it takes until the first gradient can be back; then one in, one out.
Actions one_f_one_b(std::size_t stages, std::size_t micro_batches, std::size_t stage) {
  const std::size_t ahead = std::min(stages - 1 - stage, micro_batches);
  Actions actions;
  for (std::size_t i = 0; i < micro_batches + ahead; ++i) {
    if (i < micro_batches) actions.push_back({ActionKind::forward, i});
    if (i >= ahead) actions.push_back({ActionKind::backward, i - ahead});
  }
  return actions;
}

// Micro-batches go through in rounds of as many as there are stages: a round passes all first chunks, then all second ones, ...
Actions interleaved(const ScheduleShape& shape, std::size_t stage) {
  const std::size_t p = shape.stages, v = shape.chunks, total = shape.micro_batches * v;
  const auto micro_batch = [&](std::size_t k) { return k / (p * v) * p + k % p; };
  const auto chunk = [&](std::size_t k) { return k % (p * v) / p; };
  const std::size_t ahead = std::min(total, 2 * (p - stage - 1) + (v - 1) * p);
  Actions actions;
  for (std::size_t k = 0; k < total + ahead; ++k) {
    if (k < total) actions.push_back({ActionKind::forward, micro_batch(k), chunk(k)});
    if (k >= ahead) actions.push_back({ActionKind::backward, micro_batch(k - ahead), v - 1 - chunk(k - ahead)});
  }
  return actions;
}

// 1f1b with the backward in two: a weight gradient waits until a later stage no longer waits for this one's input gradients, and
// fills what would be the bubble of the cool-down. ZB-H1 of Qi et al. 2023: no more in flight than on 1f1b's first stage.
Actions zero_bubble(std::size_t stages, std::size_t micro_batches, std::size_t stage) {
  const std::size_t ahead = std::min(stages - 1 - stage, micro_batches);
  Actions actions;
  std::size_t inputs = 0, weights = 0;
  const auto weight = [&] { actions.push_back({ActionKind::backward_weight, weights++}); };
  for (std::size_t i = 0; i < ahead; ++i) actions.push_back({ActionKind::forward, i});
  for (std::size_t i = ahead; i < micro_batches; ++i) {
    actions.push_back({ActionKind::forward, i});
    actions.push_back({ActionKind::backward_input, inputs++});
    if (i - ahead >= stage) weight();
  }
  while (inputs < micro_batches) {
    actions.push_back({ActionKind::backward_input, inputs++});
    weight();
  }
  while (weights < micro_batches) weight();
  return actions;
}

Actions actions_of(const ScheduleShape& shape, std::size_t stage) {
  switch (shape.kind) {
    case ScheduleKind::gpipe: return gpipe(shape.micro_batches);
    case ScheduleKind::one_f_one_b: return one_f_one_b(shape.stages, shape.micro_batches, stage);
    case ScheduleKind::interleaved: return interleaved(shape, stage);
    case ScheduleKind::zero_bubble: return zero_bubble(shape.stages, shape.micro_batches, stage);
  }
  return {};  // no other kind
}

void require_shape(const ScheduleShape& shape) {
  if (shape.stages == 0 || shape.micro_batches == 0 || shape.chunks == 0)
    throw failure(Exit::usage, "a pipeline of {} stages, {} micro-batches and {} chunks a stage: each must be at least 1",
                  shape.stages, shape.micro_batches, shape.chunks);
  if (shape.kind != ScheduleKind::interleaved && shape.chunks != 1)
    throw failure(Exit::usage, "--chunks {}: a stage of --schedule {} has 1; only interleaved has several", shape.chunks,
                  name_of(shape.kind));
  if (shape.kind == ScheduleKind::interleaved && shape.micro_batches % shape.stages != 0)
    throw failure(Exit::usage,
                  "--micro-batches {} do not divide by the {} stages: --schedule interleaved needs a multiple of them",
                  shape.micro_batches, shape.stages);
}

// The slice `distance` after (+1) or before (-1) that one, if the model has it.
std::optional<Slice> neighbour(const ScheduleShape& shape, Slice place, int distance) {
  const std::size_t slice = place.chunk * shape.stages + place.stage;
  if (distance < 0 ? slice == 0 : slice + 1 == shape.stages * shape.chunks) return std::nullopt;
  const std::size_t other = distance < 0 ? slice - 1 : slice + 1;
  return Slice{.stage = other % shape.stages, .chunk = other / shape.stages};
}

// What must have ended before the action may begin, other than what stands before it in its stage's list.
struct Needs {
  std::optional<std::pair<std::size_t, Action>> message;  // another slice's action, and its stage
  std::optional<Action> own;                              // of the same slice
};

Needs needs_of(const Schedule& schedule, std::size_t stage, const Action& action) {
  Needs needs;
  if (const auto from = source_of(schedule.shape, stage, action))
    needs.message = {from->stage, {action.kind, action.micro_batch, from->chunk}};
  if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_input)
    needs.own = {ActionKind::forward, action.micro_batch, action.chunk};
  if (action.kind == ActionKind::backward_weight) needs.own = {ActionKind::backward_input, action.micro_batch, action.chunk};
  return needs;
}

// Runs each stage's list as far as what it needs has ended, round after round until nothing moves.
class ListRun {
 public:
  ListRun(const Schedule& schedule, const ActionTimes& times)
      : schedule_(schedule), times_(times), next_(schedule.actions.size()), free_(schedule.actions.size()) {}

  Timeline run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < next_.size(); ++stage)
        while (next_[stage] < schedule_.actions[stage].size() && step(stage)) moved = true;
    }
    return {.stages = next_.size(), .bars = std::move(bars_)};
  }
  // The first stage that has not come to its end, after run().
  std::optional<std::pair<std::size_t, Action>> stuck() const {
    for (std::size_t stage = 0; stage < next_.size(); ++stage)
      if (next_[stage] < schedule_.actions[stage].size()) return {{stage, schedule_.actions[stage][next_[stage]]}};
    return std::nullopt;
  }

 private:
  bool step(std::size_t stage) {
    const Action& action = schedule_.actions[stage][next_[stage]];
    const Needs needs = needs_of(schedule_, stage, action);
    double begin = free_[stage];
    if (needs.own && !wait_for(stage, *needs.own, 0, begin)) return false;
    if (needs.message) {
      const auto& [from, made] = *needs.message;
      if (!wait_for(from, made, from == stage ? 0 : times_.message, begin)) return false;
    }
    const double end = begin + duration_of(schedule_.shape, times_, action.kind);
    ended_[{stage, action}] = free_[stage] = end;
    bars_.push_back({.stage = stage, .action = action, .begin = begin, .end = end});
    next_[stage] += 1;
    return true;
  }

  bool wait_for(std::size_t stage, const Action& action, double message, double& begin) const {
    const auto found = ended_.find({stage, action});
    if (found == ended_.end()) return false;
    begin = std::max(begin, found->second + message);
    return true;
  }

  const Schedule& schedule_;
  const ActionTimes& times_;
  std::vector<std::size_t> next_;  // position in each stage's list
  std::vector<double> free_;       // end of each stage's last action
  std::map<std::pair<std::size_t, Action>, double> ended_;
  std::vector<Timeline::Bar> bars_;
};

void require_complete(const ScheduleShape& shape, std::size_t stage, const Actions& actions) {
  const bool halves = shape.kind == ScheduleKind::zero_bubble;
  std::set<Action> missing;
  for (std::size_t i = 0; i < shape.micro_batches; ++i)
    for (std::size_t c = 0; c < shape.chunks; ++c) {
      missing.insert({ActionKind::forward, i, c});
      missing.insert({halves ? ActionKind::backward_input : ActionKind::backward, i, c});
      if (halves) missing.insert({ActionKind::backward_weight, i, c});
    }
  for (const Action& action : actions)
    if (missing.erase(action) == 0)
      throw failure(Exit::usage, "{} comes twice on stage {}, or does not belong there", text_of(action), stage);
  if (!missing.empty()) throw failure(Exit::usage, "{} is missing on stage {}", text_of(*missing.begin()), stage);
}

}  // namespace

std::string_view name_of(ScheduleKind kind) { return std::ranges::find(kNames, kind, &Named::kind)->name; }

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Named& named : kNames) names.emplace_back(named.name);
  return names;
}

ScheduleKind schedule_named(std::string_view name) {
  const auto found = std::ranges::find(kNames, name, &Named::name);
  if (found == kNames.end()) throw failure(Exit::usage, "--schedule: {} is none of {}", name, fmt::join(schedule_names(), ", "));
  return found->kind;
}

std::string text_of(const Action& action) {
  constexpr std::string_view kLetters = "FBIW";
  const char letter = kLetters[static_cast<std::size_t>(action.kind)];
  return action.chunk == 0 ? fmt::format("{}{}", letter, action.micro_batch)
                           : fmt::format("{}{}.{}", letter, action.micro_batch, action.chunk);
}

Schedule make_schedule(const ScheduleShape& shape) {
  require_shape(shape);
  Schedule schedule{.shape = shape, .actions = {}};
  for (std::size_t stage = 0; stage < shape.stages; ++stage) schedule.actions.push_back(actions_of(shape, stage));
  return schedule;
}

void require_runnable(const Schedule& schedule) {
  require_shape(schedule.shape);
  if (schedule.actions.size() != schedule.shape.stages)
    throw failure(Exit::usage, "{} lists of actions for {} stages", schedule.actions.size(), schedule.shape.stages);
  for (std::size_t stage = 0; stage < schedule.shape.stages; ++stage)
    require_complete(schedule.shape, stage, schedule.actions[stage]);
  const ActionTimes any;
  ListRun run(schedule, any);
  run.run();
  if (const auto stuck = run.stuck())
    throw failure(Exit::usage, "stage {} waits for ever before {}: what it needs comes later", stuck->first,
                  text_of(stuck->second));
}

std::optional<Slice> source_of(const ScheduleShape& shape, std::size_t stage, const Action& action) {
  if (action.kind == ActionKind::backward_weight) return std::nullopt;
  return neighbour(shape, {stage, action.chunk}, action.kind == ActionKind::forward ? -1 : 1);
}

std::optional<Slice> destination_of(const ScheduleShape& shape, std::size_t stage, const Action& action) {
  if (action.kind == ActionKind::backward_weight) return std::nullopt;
  return neighbour(shape, {stage, action.chunk}, action.kind == ActionKind::forward ? 1 : -1);
}

double duration_of(const ScheduleShape& shape, const ActionTimes& times, ActionKind kind) {
  const double chunks = static_cast<double>(shape.chunks);
  switch (kind) {
    case ActionKind::forward: return times.forward / chunks;
    case ActionKind::backward: return (times.backward_input + times.backward_weight) / chunks;
    case ActionKind::backward_input: return times.backward_input / chunks;
    case ActionKind::backward_weight: return times.backward_weight / chunks;
  }
  return 0;  // no other kind
}

std::size_t peak_in_flight(const std::vector<Action>& actions) {
  std::size_t now = 0, peak = 0;
  for (const Action& action : actions) {
    if (action.kind == ActionKind::forward) peak = std::max(peak, ++now);
    if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight) --now;
  }
  return peak;
}

double Timeline::makespan() const {
  double end = 0;
  for (const Bar& bar : bars) end = std::max(end, bar.end);
  return end;
}

double Timeline::busy() const {
  double sum = 0;
  for (const Bar& bar : bars) sum += bar.end - bar.begin;
  return sum;
}

double Timeline::utilisation() const {
  const double whole = makespan() * static_cast<double>(stages);
  return whole > 0 ? busy() / whole : 1;
}

double Timeline::bubble() const { return utilisation() > 0 ? 1 / utilisation() - 1 : 0; }

Timeline predict(const Schedule& schedule, const ActionTimes& times) { return ListRun(schedule, times).run(); }

}  // namespace shoal::train
