// SPDX-License-Identifier: Apache-2.0
// Where a lane's program stands. Loops are walked, never written out.
#pragma once

#include "plan/plan.h"

namespace shoal::plan {

class Cursor {
 public:
  Cursor() = default;
  explicit Cursor(const Lane& lane) : lane_(&lane) { settle(); }

  bool done() const { return lane_ == nullptr || loop_ == lane_->loops.size(); }
  const Step& step() const { return lane_->loops[loop_].steps[step_]; }
  std::int32_t iteration() const { return iteration_; }
  // Position among the lane's steps with loops not repeated, for telling steps apart.
  std::size_t loop() const { return loop_; }
  std::size_t step_in_loop() const { return step_; }
  const Lane& lane() const { return *lane_; }

  void advance() {
    const Loop& loop = lane_->loops[loop_];
    if (++step_ < loop.steps.size()) return;
    step_ = 0;
    if (++iteration_ < loop.iterations) return;
    iteration_ = 0;
    ++loop_;
    settle();
  }
  void restart() {
    loop_ = 0;
    settle();
  }

 private:
  void settle() {  // past loops that do nothing
    while (loop_ < lane_->loops.size() && (lane_->loops[loop_].iterations <= 0 || lane_->loops[loop_].steps.empty())) ++loop_;
  }

  const Lane* lane_ = nullptr;
  std::size_t loop_ = 0, step_ = 0;
  std::int32_t iteration_ = 0;
};

}  // namespace shoal::plan
