// SPDX-License-Identifier: Apache-2.0
#include "plan/collective.h"

#include <array>

namespace shoal::plan {
namespace {

constexpr std::array<std::string_view, kCollectives> kNames = {"all_reduce",     "reduce",       "broadcast",   "all_gather",
                                                               "reduce_scatter", "all_to_all",   "gather",      "scatter",
                                                               "barrier",        "all_gather_v", "all_to_all_v"};

}  // namespace

std::string_view name_of(Collective collective) { return kNames[static_cast<std::size_t>(collective)]; }

std::optional<Collective> collective_from(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Collective>(i);
  return std::nullopt;
}

}  // namespace shoal::plan
