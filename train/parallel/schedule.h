// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules: in which order each stage of a pipeline computes what. The model is cut into stages * chunks slices of
// neighbouring layers; stage s holds slices s, s + stages, ...: slice c * stages + s is its chunk c. A batch is cut into
// micro-batches, weights change after the last of them, so that every order below computes the same gradients.
//
//   gpipe         all forwards, then all backwards                    bubble (p-1)/m       in flight m             Huang 2019
//   1f1b          forwards and backwards take turns                   bubble (p-1)/m       in flight p - s         Harlap 2018
//   interleaved   the same over v chunks a stage                      bubble (p-1)/(vm)    in flight up to twice   Narayanan 2021
//   zero-bubble   ZB-H1: weight gradients where 1f1b would wait       a third for F=B=W*   in flight p             Qi 2023
//   * makespan m(F+B+W) + (p-1)(F+B-W) from m = p on, (m+p-1)(F+B) + W below
//
// A stage runs its list in order. An action that needs what another stage makes waits for the message; whoever makes it must not
// wait for it to be taken: sends are on a stream of their own, one for each direction (activations, gradients) or for each
// stage that they go to. Both ends of a pair of stages then see the messages in the same order.
//
// Pure functions; any thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::train {

enum class ScheduleKind : std::uint8_t { gpipe, one_f_one_b, interleaved, zero_bubble };
std::string_view name_of(ScheduleKind kind);  // "gpipe", "1f1b", "interleaved", "zero-bubble"
std::vector<std::string> schedule_names();
// Of a name; throws Error (Exit::usage) with the list of names if there is none such.
ScheduleKind schedule_named(std::string_view name);

enum class ActionKind : std::uint8_t {
  forward,
  backward,         // both gradients
  backward_input,   // of the slice's input: what the slice before waits for
  backward_weight,  // of its weights: nobody waits for it
};

struct Action {
  ActionKind kind = ActionKind::forward;
  std::size_t micro_batch = 0;
  std::size_t chunk = 0;

  friend auto operator<=>(const Action&, const Action&) = default;
};
std::string text_of(const Action& action);  // "F3", "B0.1" (of chunk 1), "I2" (of the input), "W2"

struct ScheduleShape {
  ScheduleKind kind = ScheduleKind::gpipe;
  std::size_t stages = 1;
  std::size_t micro_batches = 1;
  std::size_t chunks = 1;  // slices a stage
};

struct Schedule {
  ScheduleShape shape;
  std::vector<std::vector<Action>> actions;  // a stage's, in its order
};

// Throws Error (Exit::usage) that names both numbers where the shape has no such schedule.
Schedule make_schedule(const ScheduleShape& shape);

// Throws Error (Exit::usage) unless every stage has each action exactly once and the lists, run in order, come to their end.
void require_runnable(const Schedule& schedule);

// Where a slice is.
struct Slice {
  std::size_t stage = 0;
  std::size_t chunk = 0;

  friend bool operator==(const Slice&, const Slice&) = default;
};
// The slice whose result the action needs, and the one that needs the action's; none at the model's ends and for weight
// gradients. (The same micro-batch; with one stage both are on it.)
std::optional<Slice> source_of(const ScheduleShape& shape, std::size_t stage, const Action& action);
std::optional<Slice> destination_of(const ScheduleShape& shape, std::size_t stage, const Action& action);

// The most activations that a stage's list keeps at once, each of one micro-batch and one chunk: from its forward until the
// backward that needs it last.
std::size_t peak_in_flight(const std::vector<Action>& actions);

// When each action ran, measured or predicted, in seconds from the first one's begin.
struct Timeline {
  struct Bar {
    std::size_t stage = 0;
    Action action;
    double begin = 0;
    double end = 0;
  };
  std::size_t stages = 1;
  std::vector<Bar> bars;

  double makespan() const;
  double busy() const;         // sum over all stages
  double utilisation() const;  // busy time of all stages' time, 0..1
  double bubble() const;       // idle time as a share of busy time: makespan / ideal - 1
};

// Of one micro-batch through a whole stage: an action of one of v chunks takes 1/v of it. A full backward takes both parts.
struct ActionTimes {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  double message = 0;  // from the end of an action until another stage has what it made
};
double duration_of(const ScheduleShape& shape, const ActionTimes& times, ActionKind kind);

// Each action begins when its stage is free and its input is there. `schedule` is runnable.
Timeline predict(const Schedule& schedule, const ActionTimes& times);

}  // namespace shoal::train
