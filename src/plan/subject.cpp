// SPDX-License-Identifier: Apache-2.0
#include "plan/subject.h"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::plan {
namespace {

bool same(const Step& a, const Step& b) {
  return a.op == b.op && a.final == b.final && a.from == b.from && a.to == b.to && a.source == b.source && a.target == b.target;
}
bool same(const Loop& a, const Loop& b) {
  return a.iterations == b.iterations && std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                                                    [](const Step& x, const Step& y) { return same(x, y); });
}
bool same(const Lane& a, const Lane& b) {
  return a.channel == b.channel && std::equal(a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end(),
                                              [](const Loop& x, const Loop& y) { return same(x, y); });
}

}  // namespace

std::string title(const Subject& subject) { return fmt::format("{} {}", name_of(subject.collective), subject.name); }

std::vector<Plan> build_all(const Subject& subject, World world, Rank root, std::int32_t group) {
  std::vector<Plan> plans;
  plans.reserve(static_cast<std::size_t>(world.value));
  for (std::int32_t r = 0; r < world.value; ++r)
    plans.push_back(subject.build({.collective = subject.collective, .world = world, .rank = {r}, .root = root, .group = group}));
  return plans;
}

bool same_program(const Plan& a, const Plan& b) {
  return a.refusal.empty() == b.refusal.empty() && a.chunks == b.chunks && a.scratch == b.scratch && a.shared == b.shared &&
         a.credits == b.credits &&
         std::equal(a.lanes.begin(), a.lanes.end(), b.lanes.begin(), b.lanes.end(),
                    [](const Lane& x, const Lane& y) { return same(x, y); });
}

}  // namespace shoal::plan
