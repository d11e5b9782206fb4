// SPDX-License-Identifier: Apache-2.0
// An algorithm as the sweep and the mutation tests see it: a name and a function. This folder knows of no algorithms; whoever
// calls hands them in. Value types.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace shoal::plan {

struct Subject {
  std::string_view name;
  Collective collective;
  std::function<Plan(const Request&)> build;  // called from several threads at once
};

// "all_reduce ring"
std::string title(const Subject& subject);

// All ranks' plans.
std::vector<Plan> build_all(const Subject& subject, World world, Rank root = {}, std::int32_t group = 0);

// Whether two plans tell the rank to do the same.
bool same_program(const Plan& a, const Plan& b);

}  // namespace shoal::plan
