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

// invalid_argument unless it is a type of the list.
Result<DataType> read_type(ncclDataType_t type);

// invalid_argument unless it is a mode of the list.
Result<engine::Numerics> read_numerics(shoalNumerics mode);

// A count that memory could hold, `blocks` times.
Status check_count(const char* name, std::size_t count, DataType type, std::size_t blocks = 1);

Status check_rank(const char* name, int rank, World world);

// The user's two buffers: each there if it has bytes; in place exactly if input + shift == output, or else apart.
struct Extent {
  const void* start = nullptr;
  Bytes size;
};
Status check_buffers(const Extent& input, const Extent& output, bool in_place_allowed, std::ptrdiff_t shift = 0);

}  // namespace shoal::api
