// SPDX-License-Identifier: Apache-2.0
// Proves a set of plans: runs all ranks' plans symbolically, where a value is a chunk's number and the set of ranks whose
// contributions it holds. Plans are Kahn networks, so one run with the declared credits decides for every timing. Pure; any
// thread.
//
// Proven:
// - The result. Every chunk of every rank's output ends as the collective defines it: a sum has each rank's contribution exactly
//   once and is finished exactly once (Step::final); a moved chunk is the right one of the right rank. All ranks of an all-reduce
//   add each chunk in the same tree (the same bits), and in the promised one where the plan promises one (Plan::order). Nobody
//   leaves a barrier who has not heard, directly or through others, that every rank has entered it.
// - Memory. Nothing is read before it was written; no index leaves its buffer; no input is written, nor read after the output
// took
//   its place (in place); no value is put where it may not fit (lengths of chunks may differ); two lanes of a rank never touch
//   the same output or scratch; scratch holds nothing from one run to the next; every declared slot is used by some rank. A
//   shared slot is read only after it was written and overwritten only after it was read, by what signals order (data
//   may be empty, and then no message is sent).
// - Messages. All ends: with exactly the declared credits nobody waits for ever, no message is left behind, each message has as
//   many chunks as its receiver expects, and no two lanes of a rank share an end of a link.
// - By reference, where a plan declares it: what lies in memory and goes as one chunk (a send; a fused step that keeps its value)
//   refers to that memory until the receiver looks at it; the link takes nothing before that, and the memory is overwritten only
//   when the lane can know, because it has sent another message on that link or a finished sum came back. Other messages pass
//   through wire memory and its credits, as ever.
//
// A plan set that refuses (Plan::refusal) on all ranks is right.
#pragma once

#include <cstdint>
#include <span>

#include "core/status.h"
#include "plan/plan.h"

namespace shoal::plan {

enum class LinkMode : std::uint8_t {
  eager,         // messages are copied: a link holds up to the plan's credits
  by_reference,  // messages refer to the sender's memory where they can
};

struct CheckOptions {
  LinkMode links = LinkMode::eager;
  bool in_place = false;  // input and output are the same memory (ignored where the collective cannot)
  int slices = 2;         // how often each lane's program runs; at least four times where slots are shared
  int credits_delta = 0;  // more or fewer credits than declared
  bool field = false;     // sums in a prime field, as worlds above 512 have them anyway (contributions.h)
};

// `plans` by rank, all of one world. Ok, or internal_error that names rank, step and chunk.
Status check(std::span<const Plan> plans, const CheckOptions& options = {});

// check() in all the modes that the plans declare: eager out of place and in place, and by reference, both, where declared.
Status check_all_modes(std::span<const Plan> plans);

}  // namespace shoal::plan
