// SPDX-License-Identifier: Apache-2.0
// Averaging of replicas whose communication may take longer than a step: delayed gradient averaging (Zhu et al. 2021), and with
// it FedAvg, local SGD and DiLoCo, which are its case without delay.
//
// Every rank j takes optimiser steps of its own, counted in iterations t = 1, 2, ... After every K of them a round ends: the sum
// S_j of the updates that its steps made starts on its way to become the mean over ranks. The mean is awaited D iterations later,
// when the steps since have long gone on, and takes the place of the rank's own sum:
//
//   w_j += mean S - S_j
//
// Updates travel, not gradients: what a step did is what is corrected, whatever momentum, Adam or a schedule made of it. Then
//   (i)   the mean of the replicas moves by the mean of the fresh updates, as if there were no delay;
//   (ii)  a replica is away from the mean by its own updates of the last D + K iterations at most, less their mean;
//   (iii) after drain() all replicas are equal, bit for bit: each is kept as the sum of what all ranks share and of what only
//   this
//         one has done, and then nothing is left of the latter.
// With D = 0 this is FedAvg; with K = 1 as well, the synchronous step.
//
// Without correction, the usual stale update, a step changes nothing but the sum that travels, and the mean is applied when it is
// there: replicas stay equal at all times, but are moved by updates that were computed D iterations ago.
//
// Owned by the training thread of a rank; all ranks make the same calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace shoal::train {

// How the sums of a round become their sum over all ranks. A round is known by its number, the same on all ranks.
template <typename T>
class RoundReducer {
 public:
  virtual ~RoundReducer() = default;
  // Starts to sum `values` over all ranks, in place. They stay where they are, untouched, until wait() of this round returns.
  virtual void start(std::uint64_t round, std::span<T> values) = 0;
  virtual void wait(std::uint64_t round) = 0;
};

struct DelayOptions {
  std::size_t delay = 0;        // D, iterations from the end of a round to the use of its mean
  std::size_t local_steps = 1;  // K, iterations of a round
  std::size_t sync_steps = 0;   // the first iterations, each a round of its own (post-local SGD)
  bool correction = true;

  // Whether iteration t, from 1, is the last of a round.
  bool round_ends(std::size_t t) const { return t <= sync_steps || (t - sync_steps) % local_steps == 0; }
  // Rounds that are on their way while none is awaited: what must be able to travel at once. At least 1.
  std::size_t in_flight() const;
};

// What becomes of a round's mean update, on all ranks alike. The mean as it is, or DiLoCo's outer optimiser: with the gradient
// g = -mean, v = momentum v + g, w -= rate (g + momentum v) (Nesterov, as PyTorch has it).
struct OuterOptions {
  double rate = 1;
  double momentum = 0;
};

template <typename T>
class DelayedAveraging {
 public:
  // `initial`: the parameters, the same on all ranks. `weight`: of this rank's updates in the mean; those of all ranks sum to 1.
  // The reducer outlives this.
  DelayedAveraging(const DelayOptions& options, const OuterOptions& outer, double weight, std::span<const T> initial,
                   RoundReducer<T>& reducer);

  // After each optimiser step on `parameters`, in this order. post() starts what the step has completed; settle() waits for what
  // is due, however long that takes, and puts it in.
  void post(std::span<T> parameters);
  void settle(std::span<T> parameters);

  // Ends the round under way, waits for all that are on their way, and puts them in. Steps may follow.
  void drain(std::span<T> parameters);
  // Its first part: for who drives several ranks in one thread.
  void end_round(std::span<T> parameters);

  std::size_t iteration() const { return iteration_; }
  std::size_t outstanding() const { return rounds_.size(); }
  // Bytes kept beside the parameters.
  std::size_t bytes_held() const;

 private:
  struct Round {
    std::uint64_t id = 0;
    std::size_t ended = 0;  // at this iteration
    std::vector<T> own;     // this rank's sum
    std::vector<T> sum;     // weighted; on its way to the sum over ranks
  };

  void start_round(std::span<T> parameters);
  void put_in(std::span<T> parameters);  // the oldest round
  void move_shared(std::span<const T> mean);

  DelayOptions options_;
  OuterOptions outer_;
  T weight_;
  RoundReducer<T>& reducer_;
  std::vector<T> shared_;     // the initial parameters and all means put in: the same bits on all ranks
  std::vector<T> base_;       // the parameters less this rank's updates since the last round's end
  std::vector<T> velocity_;   // of the outer optimiser; empty if it has no momentum
  std::deque<Round> rounds_;  // on their way, oldest first
  std::vector<Round> spare_;
  std::size_t iteration_ = 0;
  std::size_t last_end_ = 0;  // iteration at which a round ended last
  std::uint64_t next_id_ = 1;
};

extern template class DelayedAveraging<float>;
extern template class DelayedAveraging<double>;

}  // namespace shoal::train
