// SPDX-License-Identifier: Apache-2.0
#include "comm/selection.h"

#include <bit>

#include "core/expects.h"

namespace shoal::comm {

const algorithms::Algorithm& select(plan::Collective collective, Bytes size, World world, const Settings& settings) {
  const auto named = [&](std::string_view name) -> const algorithms::Algorithm& {
    const algorithms::Algorithm* found = algorithms::find(collective, name);
    expects(found != nullptr, "an algorithm of the table");
    return *found;
  };
  if (!settings.algorithm.empty()) return named(settings.algorithm);

  // Rounds against bytes, in bytes: a hand-over between ranks costs as much as moving `alpha` bytes (measured: where the two
  // algorithms take equal time). Least while every rank has a processor; more where ranks take turns; most over TCP.
  // A round of doubling copies n bytes and reduces n; a round of a ring passes n/p bytes on, half of the rounds reducing.
  const double alpha = settings.shm_disable ? 64 << 10 : world.value > settings.processors ? 12 << 10 : 3 << 10;
  const auto p = static_cast<unsigned>(world.value);
  const double n = static_cast<double>(size.value);
  const double rounds = static_cast<double>(std::bit_width(p) - 1) + (std::has_single_bit(p) ? 0 : 2);
  const double doubling = rounds * (alpha + 2 * n), ring = 2 * (p - 1.0) * (alpha + 1.5 * n / p);
  return named(doubling <= ring ? "recursive_doubling" : "ring");
}

}  // namespace shoal::comm
