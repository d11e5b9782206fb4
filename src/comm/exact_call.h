// SPDX-License-Identifier: Apache-2.0
// A reduction in exact numerics, as the collectives it is made of: the ranks agree on which digits their inputs need, then sum
// rows of digits as integers, piece by piece, and round once (see device/exact.h). One rank's, one thread; the user's buffers
// stay as they are but for pieces of the output that are done.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/status.h"
#include "device/exact.h"
#include "engine/call.h"
#include "engine/composition.h"

namespace shoal::comm {

// Whether a call needs this: integer sums, maxima and minima are exact as they are.
bool is_inexact(const engine::Call& call);

class ExactCall final : public engine::Composition {
 public:
  ExactCall(const engine::Call& call, World world, Rank rank);

  // invalid_usage if the input changed while the call was running.
  Result<std::optional<engine::Call>> next() override;

 private:
  bool writes_output() const { return call_.collective != plan::Collective::reduce || rank_ == call_.root; }
  std::size_t blocks() const { return plan::in_blocks(call_.collective) ? static_cast<std::size_t>(world_.value) : 1; }
  engine::Call agree();
  Status encode_piece();
  void decode_piece();

  engine::Call call_;
  World world_;
  Rank rank_;
  device::ExactNeeds needs_;
  device::ExactWindow window_;
  std::vector<std::int64_t> digits_;  // of one piece of every block
  enum class Stage { agree, begin, pieces } stage_ = Stage::agree;
  std::size_t done_ = 0;   // elements of each block
  std::size_t piece_ = 0;  // elements of each block that are under way
};

}  // namespace shoal::comm
