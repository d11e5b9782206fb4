// SPDX-License-Identifier: Apache-2.0
// ncclRedOp_t values: the built-in reductions, and user-made ones that belong to one communicator.
#pragma once

#include "api/handle.h"
#include "engine/call.h"

namespace shoal::api {

// Puts the reduction into the call: its kind and this rank's scale. A factor that is to be read when the call runs comes back in
// `late_factor`. invalid_argument for a value that is no reduction of this communicator, or whose factor has another type.
Status read_reduction(ncclRedOp_t op, ncclComm& comm, DataType type, engine::Call& call, const void*& late_factor);

}  // namespace shoal::api
