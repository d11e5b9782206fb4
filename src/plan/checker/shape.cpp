// SPDX-License-Identifier: Apache-2.0
#include "plan/checker/shape.h"

namespace shoal::plan::checker {
namespace {

// Why a step can never be right, or empty.
std::string_view flaw(const Plan& plan, const Step& step) {
  const Buffer source = step.source.buffer, target = step.target.buffer;
  const bool has_source = source != Buffer::none, has_target = target != Buffer::none;
  bool needs_source = false, needs_target = false, may_have_target = false;
  switch (step.op) {
    case Op::copy:
    case Op::reduce:
    case Op::recv_reduce:
    case Op::copy_shared:
    case Op::reduce_shared: needs_source = needs_target = true; break;
    case Op::send: needs_source = true; break;
    case Op::recv:
    case Op::recv_copy_send: needs_target = true; break;
    case Op::recv_reduce_send: needs_source = may_have_target = true; break;
    case Op::signal:
    case Op::wait: break;
  }
  if (needs_source != has_source) return "the source is missing or too much";
  if (needs_target && !has_target) return "the target is missing";
  if (has_target && !needs_target && !may_have_target) return "the target is too much";
  if (target == Buffer::input) return "writes into the input";
  for (const Chunk* chunk : {&step.source, &step.target}) {
    if (chunk->buffer == Buffer::none) continue;
    if (chunk->size < 1 || chunk->run < 1 || chunk->wrap < 0) return "a set without chunks";
    if (chunk->index.modulus < 1) return "a rotation without a modulus";
  }
  if (has_source && has_target && step.source.size != step.target.size) return "source and target differ in size";
  if ((step.op == Op::copy_shared || step.op == Op::reduce_shared) && source != Buffer::shared)
    return "the source is not a shared slot";
  if (!is_reduction(plan.collective)) {
    if (step.final) return "is marked final where nothing is reduced";
    if (reduces(step.op)) return "reduces where nothing is to be reduced";
  }
  if (step.final && !reduces(step.op) && step.op != Op::copy) return "is marked final but makes no sum";
  if (plan.collective == Collective::barrier && carries_data(step.op)) return "a barrier has no data";
  if (plan.collective == Collective::all_to_all_v) {
    // Only the two ends know a block's length: it goes in one message from input to output.
    const bool straight = (!has_source || source == Buffer::input) && (!has_target || target == Buffer::output);
    if (!straight || step.op == Op::recv_copy_send) return "passes a block whose length this rank does not know";
  }
  return {};
}

Status check_steps(const Plan& plan, std::size_t l) {
  const auto first_wrong = [&](std::int64_t number, const Step& step, std::string_view why) {
    return fail(Code::internal_error, "{}: {}, step {} ({}): {}", title(plan), title(plan, l), number, describe(step, 0), why);
  };
  std::int64_t number = 0;
  for (const Loop& loop : plan.lanes[l].loops) {
    if (loop.iterations <= 0) continue;
    for (std::size_t s = 0; s < loop.steps.size(); ++s)
      if (const std::string_view why = flaw(plan, loop.steps[s]); !why.empty())
        return first_wrong(number + static_cast<std::int64_t>(s), loop.steps[s], why);
    number += static_cast<std::int64_t>(loop.steps.size()) * loop.iterations;
  }
  return {};
}

}  // namespace

std::string title(const Plan& plan) {
  const std::string root = has_root(plan.collective) ? fmt::format(", root {}", plan.root.value) : "";
  return fmt::format("{} of {} ranks{}", plan.algorithm, plan.world.value, root);
}

std::string title(const Plan& plan, std::size_t lane) {
  return plan.lanes.size() > 1 ? fmt::format("rank {}, lane {}", plan.rank.value, lane) : fmt::format("rank {}", plan.rank.value);
}

Status check_shape(std::span<const Plan> plans) {
  if (plans.empty()) return fail(Code::invalid_argument, "check: no plans");
  const Plan& first = plans[0];
  for (std::size_t r = 0; r < plans.size(); ++r) {
    const Plan& plan = plans[r];
    if (plan.world.value != static_cast<std::int32_t>(plans.size()) || plan.rank.value != static_cast<std::int32_t>(r))
      return fail(Code::internal_error, "plan {} of {} says it is rank {} of {}", r, plans.size(), plan.rank.value,
                  plan.world.value);
    const auto differ = [&](std::string_view what) {
      return fail(Code::internal_error, "{}: rank {} differs from rank 0 in {}", title(first), r, what);
    };
    if (plan.refusal.empty() != first.refusal.empty()) return differ("whether there is a plan");
    if (plan.algorithm != first.algorithm) return differ("the algorithm");
    if (plan.collective != first.collective) return differ("the collective");
    if (plan.root != first.root) return differ("the root");
    if (plan.chunks != first.chunks) return differ("the number of chunks");
    if (plan.shared != first.shared) return differ("the number of shared slots");
    if (plan.credits != first.credits) return differ("the number of credits");
    if (plan.by_reference != first.by_reference) return differ("whether messages may refer to memory");
    if (plan.pipelined != first.pipelined) return differ("whether it is pipelined");
    if (plan.order != first.order) return differ("the order of additions");
  }
  if (!first.refusal.empty()) return {};
  if (first.chunks < 1 || first.shared < 0 || first.credits < 0 || first.root.value < 0 || first.root.value >= first.world.value)
    return fail(Code::internal_error, "{}: {} chunks, {} shared slots, {} credits", title(first), first.chunks, first.shared,
                first.credits);
  if (first.order != Order::any && !is_reduction(first.collective))
    return fail(Code::internal_error, "{}: promises an order of additions, but adds nothing", title(first));
  for (const Plan& plan : plans) {
    if (plan.scratch < 0)
      return fail(Code::internal_error, "{}: rank {} has {} slots", title(plan), plan.rank.value, plan.scratch);
    for (std::size_t l = 0; l < plan.lanes.size(); ++l) {
      if (plan.lanes[l].channel < 0 || plan.lanes[l].channel >= 1 << 12)
        return fail(Code::internal_error, "{}: {} is on channel {}", title(plan), title(plan, l), plan.lanes[l].channel);
      if (Status s = check_steps(plan, l); !s.is_ok()) return s;
    }
  }
  return {};
}

}  // namespace shoal::plan::checker
