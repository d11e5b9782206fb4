// SPDX-License-Identifier: Apache-2.0
// A slower wire than the machine has, as numbers: SHOAL_SHIM="latency=100ms,bandwidth=100Mbit,jitter=5ms,seed=1". Between each
// two ranks and in each direction a message of b bytes arrives at max(now, wire free) + latency + jitter + b / bandwidth, and the
// wire is free again b / bandwidth after it was (transports/shim makes it so). Value type.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/status.h"

namespace shoal {

struct Shim {
  std::chrono::nanoseconds latency{0};
  std::chrono::nanoseconds jitter{0};                              // at most; evenly spread, never against the order
  double bandwidth_Bps = std::numeric_limits<double>::infinity();  // bytes a second
  std::uint64_t seed = 1;                                          // of the jitter
  friend bool operator==(const Shim&, const Shim&) = default;
};

// Parts separated by commas, each at most once and at least one:
//   latency=TIME, jitter=TIME   a number with ns, us, ms or s behind it, 0 to 60 s
//   bandwidth=RATE              a number with bit, Kbit, Mbit or Gbit (powers of 1000, a second) behind it, 1 Kbit to 10000 Gbit
//   seed=NUMBER                 a whole number
// invalid_argument names the part and what is allowed.
Result<Shim> parse_shim(std::string_view text);

}  // namespace shoal
