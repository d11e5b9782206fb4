// SPDX-License-Identifier: Apache-2.0
// How a step's gradients become the whole batch's: the seam between a trainer and its peers. Used by the training thread only.
#pragma once

#include <cstddef>
#include <span>

#include "train/parallel/buckets.h"

namespace shoal::train {

class GradientSync {
 public:
  virtual ~GradientSync() = default;

  virtual std::span<const Bucket> buckets() const = 0;
  // During backward: the gradients at [offset, end of the arena) are this rank's final ones. Offsets only fall within a step.
  virtual void ready_from(std::size_t offset) = 0;
  // After backward, for each bucket in order: returns when the bucket holds the sum over all ranks.
  virtual void wait(std::size_t bucket) = 0;
};

// A run without peers: one bucket, nothing to wait for.
class Alone final : public GradientSync {
 public:
  explicit Alone(std::size_t parameters) : everything_{.begin = 0, .end = parameters} {}

  std::span<const Bucket> buckets() const override { return {&everything_, 1}; }
  void ready_from(std::size_t) override {}
  void wait(std::size_t) override {}

 private:
  Bucket everything_;
};

}  // namespace shoal::train
