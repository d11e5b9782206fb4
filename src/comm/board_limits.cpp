// SPDX-License-Identifier: Apache-2.0
#include "comm/board_limits.h"

#include <limits>

namespace shoal::comm {
namespace {

constexpr std::size_t kKiB = 1 << 10;

// The more vectors everybody adds, the shorter they must be.
std::size_t limit(plan::Collective collective, plan::Boards how, std::size_t world, bool crowded) {
  using plan::Collective;
  if (how == plan::Boards::two_shot) return crowded || world > 2 ? 512 * kKiB : 0;
  switch (collective) {
    case Collective::all_reduce: return (crowded ? 64 : 256) * kKiB / world;
    case Collective::broadcast: return (crowded ? 32 << 10 : 4 << 10) * kKiB;
    case Collective::reduce: return (crowded ? 512 : 4 << 10) * kKiB;
    case Collective::all_gather: return (crowded ? 256 : 64) * kKiB;
    case Collective::barrier: return std::numeric_limits<std::size_t>::max();
    default: return 128 * kKiB;
  }
}

}  // namespace

std::optional<Bytes> board_limit(const plan::Plan& plan, const Situation& situation) {
  if (plan.boards == plan::Boards::unused) return std::nullopt;
  return Bytes{limit(plan.collective, plan.boards, static_cast<std::size_t>(situation.world.value), situation.crowded)};
}

std::optional<Pulling> pull_limit(plan::Collective collective, const Situation& situation, const Settings& settings) {
  using plan::Collective;
  if (!situation.mappable || situation.world.value == 1 || settings.pull_bytes == 0 || collective > Collective::scatter)
    return std::nullopt;
  if (settings.pull_bytes > 0) return Pulling{Bytes{static_cast<std::size_t>(settings.pull_bytes)}};
  // Two summands give the same sum in any order: only then may it be left to the moment how they are added.
  if (plan::is_reduction(collective) && situation.world.value > 2) return std::nullopt;
  return Pulling{Bytes{128 * kKiB}, false};
}

Bytes shown_bytes(const plan::Plan& plan, Bytes length) {
  using plan::Collective;
  const bool all_blocks = plan.collective == Collective::reduce_scatter || plan.collective == Collective::all_to_all ||
                          plan.collective == Collective::scatter;
  return {length.value * (all_blocks ? static_cast<std::size_t>(plan.world.value) : 1)};
}

}  // namespace shoal::comm
