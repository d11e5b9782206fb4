// SPDX-License-Identifier: Apache-2.0
// The parameters of a model under ZeRO, group by group: where weights, gradients and optimiser state are, when they move and when
// they are freed. Knows no model: whoever computes uses the weights of a group, adds to its gradients, and says when they are
// complete. What is communicated, and in which order, depends on the groups and the step's number only, never on what a rank has
// computed: a gradient that nobody adds to counts as zero.
//
//   stage        weights  gradients  optimiser   a group's gradients           its weights
//   0            whole    whole      whole       all-reduce
//   1            whole    whole      shard       reduce-scatter                all-gather after the update
//   2            whole    shard      shard       reduce-scatter, then freed    all-gather after the update
//   3            shard    shard      shard       reduce-scatter, then freed    all-gather before every use, then freed
//
// With secondary shards (hpZ of ZeRO++, Wang et al. 2023) only the first gathering of a step is over all ranks of the shard
// group; its share of what came is what each rank of a node then holds for the others of its node until the weights change.
//
// One thread; collective: all ranks make the same calls but gradients() and ready(), which a rank may leave out.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "train/nn/optimizer.h"
#include "train/parallel/held.h"
#include "train/parallel/zero_costs.h"
#include "train/parallel/zero_ranks.h"
#include "train/piece.h"

namespace shoal::train {

// T: what weights and gradients are stored and communicated in. float: the weights are their own masters. Bf16: masters in
// float32 belong to the optimiser's state.
template <typename T>
class ZeroStore {
 public:
  // Fills a group's initial weights: the same on all ranks.
  using Fill = std::function<void(std::span<const Tensor>, std::span<float>)>;
  // Whether a tensor's group is not trained in a step: the same on all ranks, and for all tensors of a group.
  using Frozen = std::function<bool(const Tensor&, std::size_t step)>;

  // groups: the tensors of each, laid out from 0. order: in which their gradients become complete, each group once. ranks: made
  // with the same options; of one store at a time.
  ZeroStore(const ZeroOptions& options, const Optimizer& optimizer, std::vector<std::vector<Tensor>> groups,
            std::vector<std::size_t> order, const Fill& fill, Frozen frozen, ZeroRanks& ranks, Ledger& ledger);
  ~ZeroStore();
  ZeroStore(const ZeroStore&) = delete;
  ZeroStore& operator=(const ZeroStore&) = delete;

  // Weights, padding left off. fetch begins to bring them here, use waits for that, drop frees. Every use has a fetch before it;
  // the next fetch may come before the drop.
  void fetch(std::size_t group);
  std::span<float> use(std::size_t group);
  void drop(std::size_t group);

  // A step is begin_step, then for each micro-batch begin_micro_batch and end_micro_batch, then finish_step.
  void begin_step(std::size_t number);
  void begin_micro_batch(bool first, bool last);
  std::span<float> gradients(std::size_t group);  // to add to
  void ready(std::size_t group);                  // this rank adds no more in this micro-batch
  void end_micro_batch();                         // ... to any group
  // Updates; clip: of the norm of all trained gradients, 0: none.
  void finish_step(float rate, double clip);

  bool frozen(std::size_t group) const { return groups_[group].frozen; }  // in this step
  Extent own(std::size_t group) const { return groups_[group].own; }      // what this rank updates; padding counted
  std::size_t padded() const;                                             // elements of all groups
  std::size_t padded_trained() const;                                     // ... that were trained in the last step

  std::vector<Piece> pieces();
  void reloaded();  // the pieces have been written to

 private:
  struct Group {
    std::vector<Tensor> tensors;
    Shards shards;
    Extent own;
    std::vector<TensorRun> runs;  // of own
    bool frozen = false;
    Held<T> weights, gradients;          // the whole space, or own
    Held<float> masters, first, second;  // own; masters: of bf16
    Held<T> secondary;                   // this place's part of the space, of as many as a node has ranks
    bool secondary_holds = false;        // ... the weights as they are
    Held<T> arriving;                    // the whole space: fetched, not yet used
    Held<float> values;                  // in use, where that is not `weights`
    Held<float> summed;                  // gradients of a micro-batch, where that is not `gradients`
    Held<T> leaving;                     // the whole space: being scattered
    Held<T> room;                        // ... in two levels
    std::vector<float> shown;            // of bf16: gradients for pieces()
  };
  struct Events {
    explicit Events(Seat seat) : arrived(seat), reduced(seat) {}
    Event arrived, reduced;
  };

  std::span<T> own_of(const Group& group, std::span<T> held) const;
  std::span<float> masters(Group& group);
  void keep(Group& group);
  void hand_over(std::size_t group);
  void reduce(std::size_t group, std::span<T> whole);
  void collect_oldest();
  void await(std::size_t group);  // until its gradients are reduced
  double squares();
  void update(Group& group, float rate);
  void share_weights(Group& group);

  ZeroOptions options_;
  Optimizer optimizer_;
  std::vector<std::size_t> order_;
  Frozen is_frozen_;
  Ledger& ledger_;
  Seat seat_;  // in the shard group
  std::vector<Group> groups_;
  std::vector<Events> events_;          // by group
  std::vector<bool> ready_;             // by group, of this micro-batch
  std::size_t handed_over_ = 0;         // of order_, in this micro-batch
  std::deque<std::size_t> scattering_;  // groups with memory that is leaving
  std::size_t step_ = 0;
  bool first_ = false, last_ = false;  // micro-batch of the step
  float factor_ = 1;                   // that the last step's gradients were clipped by
  int unwinding_;                      // exceptions under way when this was made
  ZeroRanks& ranks_;
  Stream gathering_, reducing_;  // run to their ends, or to the communicators' abort, before the memory goes
};

extern template class ZeroStore<float>;
extern template class ZeroStore<Bf16>;

}  // namespace shoal::train
