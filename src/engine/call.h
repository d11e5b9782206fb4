// SPDX-License-Identifier: Apache-2.0
// One collective call as the engine runs it: the user's memory and what is to be done to it. Value type.
#pragma once

#include <string>

#include "core/types.h"
#include "device/reduce.h"
#include "plan/plan.h"

namespace shoal::engine {

struct Call {
  plan::Collective collective = plan::Collective::all_reduce;
  const void* input = nullptr;
  void* output = nullptr;
  Count count;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  device::Scale scale;
  std::uint64_t sequence = 0;  // of this communicator: 1, 2, ...
};

// "all_reduce #88 of 1000 float32, sum"
std::string describe(const Call& call);

// What the receiver of a message compares before it touches the data. Equal on all ranks exactly if they make the same call.
std::uint32_t signature(const Call& call, std::uint64_t communicator);

}  // namespace shoal::engine
