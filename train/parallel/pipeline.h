// SPDX-License-Identifier: Apache-2.0
// One stage of a pipeline: it holds its slices of the model and runs its list of actions on the micro-batches of a step. What a
// forward leaves for its backward is kept from the one to the other, and counted as Holds::activations. Gradients of a parameter
// are added up in the order of the micro-batches whatever the schedule, so that all schedules and all numbers of stages give the
// same bits. All stages call the same in the same order. One thread.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "train/parallel/own_comm.h"
#include "train/parallel/pipeline_links.h"
#include "train/parallel/pipeline_plan.h"
#include "train/stopwatch.h"

namespace shoal::train {

class Pipeline {
 public:
  // What is referenced outlives this. Ranks of `stages` are the stages. Ranks that share this stage's matrices have a `group`.
  struct Parts {
    const Communicator& stages;
    TensorGroup& group;
    Attention& attention;
    Ledger& ledger;
  };
  // With a stand-in nothing is computed, an action only takes its time: [s] of a whole stage. Losses and gradients are then 0.
  Pipeline(const GptShape& shape, PipelinePlan plan, const Parts& parts, std::uint64_t seed,
           std::optional<ActionTimes> stand_in = {});

  const PipelinePlan& plan() const { return plan_; }
  std::size_t stage() const { return parts_.stages.seat().rank; }
  std::span<Gpt> chunks() { return chunks_; }

  // Forward and backward of a step's micro-batches; adds to the gradients. The sum of the losses, on all stages.
  double train(std::span<const TokenBatch> micro_batches);
  // Adds up the gradients of the two copies of a tied table; whoever reduces gradients over replicas does that before.
  void sum_tied();
  // Forward only. The sum of the losses, on all stages.
  double evaluate(const TokenBatch& batch);

  // Waits for all stages and sets the time to 0, for a timeline of the train that follows.
  void start_clock();
  // Collective: of the last train, by each stage's own clock.
  Timeline timeline() const;

  std::size_t most_in_flight() const { return most_in_flight_; }                  // micro-batches and chunks at once
  std::size_t bytes_in_flight(std::size_t chunk) const { return bytes_[chunk]; }  // of one micro-batch, of the last train

 private:
  // What a forward leaves: the input of each unit, and its stash.
  struct Slot {
    std::vector<std::vector<float>> inputs, stashes;
    std::size_t bytes = 0;    // of what forward has filled
    std::size_t working = 0;  // of what backward will fill
  };

  std::size_t message_size(const TokenBatch& batch) const;
  void expect_messages(std::span<const TokenBatch> micro_batches);
  void run(const Action& action, const TokenBatch& batch);
  void make_room(Slot& slot, std::size_t chunk, const TokenBatch& batch);
  void give_up_room(Slot& slot, std::size_t chunk);
  void keep_input_only(Slot& slot, std::size_t chunk, const TokenBatch& batch);
  // What the destination waits for.
  std::vector<float> compute(const Action& action, const TokenBatch& batch, Slot& slot, std::vector<float> in);
  std::vector<float> forward(Gpt& chunk, const TokenBatch& batch, Slot& slot);
  std::vector<float> backward(Gpt& chunk, const TokenBatch& batch, Slot& slot, std::vector<float> flowing, bool whole);
  double from_last_stage(double loss) const;

  GptShape shape_;
  PipelinePlan plan_;
  Parts parts_;
  std::optional<ActionTimes> stand_in_;
  std::vector<Gpt> chunks_;
  PipelineLinks links_;
  std::optional<OwnComm> tied_;                                    // of the first and the last stage
  std::map<std::pair<std::size_t, std::size_t>, Slot> in_flight_;  // by micro-batch and chunk
  std::vector<std::vector<Slot>> spare_;                           // by chunk
  std::vector<std::size_t> bytes_;                                 // of a slot, by chunk
  std::size_t most_in_flight_ = 0;
  double loss_ = 0;  // of this train so far, on the last stage
  Stopwatch clock_;
  std::vector<double> times_;  // [s] begin and end of each action of the last train
};

}  // namespace shoal::train
