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

  // Rounds against bytes. With alpha the cost of a hand-over and beta that of a byte, doubling costs L (alpha + n beta) with
  // L = ceil(log2 p), a ring 2(p-1) (alpha + n/p beta). alpha/beta is about 64 KiB through shared memory and loopback TCP alike.
  // Two ranks swap the whole vector in one round instead of halves in two: that copies as many bytes and waits half as often.
  constexpr double kAlphaBytes = 64 << 10;
  const double p = world.value, n = static_cast<double>(size.value);
  const double rounds = std::bit_width(static_cast<unsigned>(world.value - 1)) + (std::has_single_bit(static_cast<unsigned>(world.value)) ? 0 : 1);
  const double doubling = rounds * (kAlphaBytes + n), ring = 2 * (p - 1) * (kAlphaBytes + n / p);
  return named(doubling <= ring ? "recursive_doubling" : "ring");
}

}  // namespace shoal::comm
