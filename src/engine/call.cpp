// SPDX-License-Identifier: Apache-2.0
#include "engine/call.h"

#include <fmt/format.h>

namespace shoal::engine {
namespace {

// The finaliser of MurmurHash3: every input bit changes about half of the output bits.
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

}  // namespace

std::string describe(const Call& call) {
  return fmt::format("{} #{} of {} {}, {}", plan::name_of(call.collective), call.sequence, call.count.value, name_of(call.type),
                     name_of(call.op));
}

std::uint32_t signature(const Call& call, std::uint64_t communicator) {
  const std::uint64_t what = static_cast<std::uint64_t>(call.collective) | static_cast<std::uint64_t>(call.type) << 8 |
                             static_cast<std::uint64_t>(call.op) << 16;
  const std::uint64_t all = mix(mix(mix(communicator ^ call.sequence) ^ call.count.value) ^ what);
  return static_cast<std::uint32_t>(all ^ (all >> 32));
}

}  // namespace shoal::engine
