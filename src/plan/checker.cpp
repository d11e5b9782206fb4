// SPDX-License-Identifier: Apache-2.0
#include "plan/checker.h"

#include "plan/checker/run.h"
#include "plan/checker/shape.h"

namespace shoal::plan {
namespace {

constexpr std::int32_t kExact = 512;       // ranks of which sets are kept
constexpr std::int32_t kSharedRanks = 64;  // shared slots remember each reader

}  // namespace

Status check(std::span<const Plan> plans, const CheckOptions& options) {
  if (Status s = checker::check_shape(plans); !s.is_ok()) return s;
  const Plan& first = plans[0];
  if (!first.refusal.empty()) return {};
  const std::int32_t world = first.world.value;
  if (first.shared > 0 && world > kSharedRanks)
    return fail(Code::invalid_argument, "{}: shared slots are proven for up to {} ranks", checker::title(first), kSharedRanks);
  if (!is_reduction(first.collective)) return checker::Run<Moved>(plans, options).whole();
  if (options.field || world > kExact) return checker::Run<Sum<FieldSum>>(plans, options).whole();
  if (world > 64) return checker::Run<Sum<RankSet<kExact / 64>>>(plans, options).whole();
  return checker::Run<Sum<RankSet<1>>>(plans, options).whole();
}

Status check_all_modes(std::span<const Plan> plans) {
  for (const bool in_place : {false, true}) {
    if (in_place && (plans.empty() || !has_in_place(plans[0].collective))) break;
    if (Status s = check(plans, {.in_place = in_place}); !s.is_ok()) return s;
    if (!plans.empty() && plans[0].by_reference)
      if (Status s = check(plans, {.links = LinkMode::by_reference, .in_place = in_place}); !s.is_ok()) return s;
  }
  return {};
}

}  // namespace shoal::plan
