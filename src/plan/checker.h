// SPDX-License-Identifier: Apache-2.0
// Proves a set of plans: runs all ranks' plans symbolically, where a value is a chunk's number and the set of ranks whose
// contributions it holds. Plans are Kahn networks, so one run with the declared credits decides for every timing. Pure; any
// thread.
//
// Proven: every output chunk of every rank ends with each rank's contribution exactly once, at its own place, finished exactly
// once (Step::final); no chunk index, peer or buffer is out of place; nothing is read before it was written, nor input after the
// output at the same place was written (in place); two lanes never touch the same output chunk; the run ends, with exactly the
// declared credits, and leaves no message behind. In by-reference mode links hold nothing: a send refers to memory until the
// receiver takes it, and no memory is overwritten before the lane knows that it was taken.
#pragma once

#include <span>
#include <vector>

#include "core/status.h"
#include "plan/plan.h"

namespace shoal::plan {

enum class LinkMode : std::uint8_t {
  eager,         // a link holds up to the plan's credits; a send returns when it has one
  by_reference,  // a link holds one reference; the next send on it waits until that was taken
};

struct CheckOptions {
  LinkMode links = LinkMode::eager;
  bool in_place = false;  // input and output are the same memory
  int slices = 2;         // how often each lane's program runs; what one run leaves behind shows in the next
};

// `plans` by rank, all of one world. Ok, or internal_error that names rank, step and chunk.
Status check(std::span<const Plan> plans, const CheckOptions& options = {});

// check() in all the modes that the plans declare: eager out of place and in place, and by reference, both, where declared.
Status check_all_modes(std::span<const Plan> plans);

}  // namespace shoal::plan
