// SPDX-License-Identifier: Apache-2.0
#include "api/arguments.h"

#include <limits>

#include "api/errors.h"

namespace shoal::api {

Status no_such_type(ncclDataType_t type) {
  return fail(Code::invalid_argument, "datatype is {}, must be 0 .. {}", static_cast<int>(type), kDataTypes - 1);
}

Result<engine::Numerics> read_numerics(shoalNumerics mode) {
  switch (mode) {
    case shoalFast: return engine::Numerics::fast;
    case shoalOrdered: return engine::Numerics::ordered;
    case shoalExact: return engine::Numerics::exact;
  }
  return fail(Code::invalid_argument, "mode is {}, must be 0 (fast), 1 (ordered) or 2 (exact)", static_cast<int>(mode));
}

Status check_large_count(const char* name, std::size_t count, DataType type, std::size_t blocks) {
  if (count > std::numeric_limits<std::size_t>::max() / 2 / element_bytes(type) / blocks)
    return fail(Code::invalid_argument, "{} is {}: more than memory can hold", name, count);
  return {};
}

Status check_rank(const char* name, int rank, World world) {
  if (rank >= 0 && rank < world.value) return {};
  return fail(Code::invalid_argument, "{} is {}, must be 0 .. {}", name, rank, world.value - 1);
}

Status check_buffers(const Extent& input, const Extent& output, bool in_place_allowed, std::ptrdiff_t shift) {
  if (input.size.value > 0)
    if (Status s = require(input.start, "sendbuff"); !s.is_ok()) return s;
  if (output.size.value > 0)
    if (Status s = require(output.start, "recvbuff"); !s.is_ok()) return s;
  if (input.size.value == 0 || output.size.value == 0) return {};
  const auto a = reinterpret_cast<std::uintptr_t>(input.start), b = reinterpret_cast<std::uintptr_t>(output.start);
  if (in_place_allowed && a + static_cast<std::uintptr_t>(shift) == b) return {};
  if (a + input.size.value <= b || b + output.size.value <= a) return {};
  return fail(Code::invalid_argument, "sendbuff ({}, {} bytes) and recvbuff ({}, {} bytes) overlap: they must be {}apart",
              input.start, input.size.value, output.start, output.size.value,
              in_place_allowed ? "in place as the collective defines it, or " : "");
}

}  // namespace shoal::api
