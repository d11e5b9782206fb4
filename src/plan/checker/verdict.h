// SPDX-License-Identifier: Apache-2.0
// What must be true when all lanes have ended: no message is left, every output is what the collective defines, and whatever was
// declared was used. Pure.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/status.h"
#include "plan/checker/memory.h"
#include "plan/checker/shape.h"
#include "plan/checker/shared_slots.h"

namespace shoal::plan::checker {

// How one chunk of an output is wrong; empty if it is not. `first`: what rank 0 has there (of an all-reduce).
template <typename Value>
std::string flaw(const Value& value, const Value* first, const Rules<Value>& rules, std::int32_t rank, std::int32_t c) {
  if (value.chunk < 0) return "nothing written to it";
  if constexpr (Value::kReduces) {
    if (!value.final) return value.from.describe({rules.world}) + (rules.complete(value) ? ", not marked final" : "");
    return first == nullptr || value.order == first->order ? "" : "another order of additions than that of rank 0";
  } else {
    const Moved goal = rules.goal(c, rank);
    if (value.chunk == goal.chunk && value.from == goal.from) return {};
    return fmt::format("chunk {} of rank {}, not chunk {} of rank {}", value.chunk, value.from, goal.chunk, goal.from);
  }
}

template <typename Value>
Status check_slots(std::span<const Plan> plans, const Rules<Value>& rules, const std::vector<Memory<Value>>& memories,
                   SharedSlots<Value>& shared) {
  const auto too_many = [&](std::int32_t s, std::string_view kind) {
    return fail(Code::internal_error, "{}: declares too many {} slots: nobody uses slot {}", title(plans[0]), kind, s);
  };
  std::int32_t most = 0;
  for (const Plan& plan : plans) most = std::max(most, plan.scratch);
  // Where slots have the lengths of certain chunks there may be gaps, but nothing above the last one used.
  for (std::int32_t s = rules.fits_slot(0, 1) ? 0 : std::max(0, most - 1); s < most; ++s)
    if (std::none_of(memories.begin(), memories.end(), [&](const auto& memory) { return memory.uses_slot(s); }))
      return too_many(s, "scratch");
  for (std::int32_t s = 0; s < plans[0].shared; ++s) {
    bool used = false;
    for (std::size_t r = 0; r < plans.size() && !used; ++r) used = shared.uses_slot(r, s);
    if (!used) return too_many(s, "shared");
  }
  return {};
}

template <typename Value>
Status verdict(std::span<const Plan> plans, const Rules<Value>& rules, const Links<Value>& links,
               const std::vector<Memory<Value>>& memories, SharedSlots<Value>& shared) {
  for (std::size_t r = 0; r < plans.size(); ++r)
    for (const Link<Value>& link : links.of_receiver(r))
      if (link.held != 0)
        return fail(Code::internal_error, "{}: rank {} never receives {} messages from rank {}", title(plans[0]), link.to,
                    link.held, link.from);
  for (std::int16_t run = 0; run < rules.runs; ++run)
    for (std::size_t r = 0; r < plans.size(); ++r)
      for (std::int32_t c = memories[r].output_begin(); c < memories[r].output_end(); ++c) {
        const Value* first = rules.collective == Collective::all_reduce ? &memories[0].result(c, run) : nullptr;
        if (const std::string how = flaw(memories[r].result(c, run), first, rules, plans[r].rank.value, c); !how.empty())
          return fail(Code::internal_error, "{}: output[{}] of rank {} ends with {}", title(plans[0]), c, r, how);
      }
  return check_slots(plans, rules, memories, shared);
}

}  // namespace shoal::plan::checker
