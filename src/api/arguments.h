// SPDX-License-Identifier: Apache-2.0
// What every collective's arguments are checked for, before anything happens.
#pragma once

#include <nccl.h>
#include <shoal/shoal.h>

#include "api/handle.h"
#include "core/status.h"
#include "core/types.h"
#include "engine/call.h"

namespace shoal::api {

Status no_such_type(ncclDataType_t type);
// invalid_argument unless it is a type of the list.
inline Result<DataType> read_type(ncclDataType_t type) {
  if (static_cast<unsigned>(type) < kDataTypes) [[likely]]
    return static_cast<DataType>(type);
  return no_such_type(type);
}

// invalid_argument unless it is a mode of the list.
Result<engine::Numerics> read_numerics(shoalNumerics mode);

Status check_large_count(const char* name, std::size_t count, DataType type, std::size_t blocks);
// invalid_argument unless it is a count that memory could hold, `blocks` times.
inline Status check_count(const char* name, std::size_t count, DataType type, std::size_t blocks = 1) {
  constexpr std::size_t kSurely = 1 << 24;  // of either: no division is needed
  if (count < kSurely && blocks < kSurely) [[likely]]
    return {};
  return check_large_count(name, count, type, blocks);
}

Status check_rank(const char* name, int rank, World world);

// The user's two buffers: each there if it has bytes; in place exactly if input + shift == output, or else apart.
struct Extent {
  const void* start = nullptr;
  Bytes size;
};
Status check_buffers(const Extent& input, const Extent& output, bool in_place_allowed, std::ptrdiff_t shift = 0);

}  // namespace shoal::api
