// SPDX-License-Identifier: Apache-2.0
// NCCL_COMM_ID: one unique id for all, made from an agreed address instead of being handed around. Pure functions.
#pragma once

#include "comm/unique_id.h"
#include "core/environment.h"
#include "core/status.h"

namespace shoal::comm {

// The id that environment.comm_id (not empty) stands for, with the addresses that its name has here. Its key comes from
// SHOAL_SECRET and the variable's text; without a secret it keeps strangers out but protects from nobody who knows the address.
// invalid_argument quotes the variable.
Result<UniqueId> id_of_comm_id(const Environment& environment);

// Whether `id` came from the variable: rank 0 then starts its root service itself.
bool is_comm_id(const UniqueId& id, const Environment& environment);

}  // namespace shoal::comm
