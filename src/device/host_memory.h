// SPDX-License-Identifier: Apache-2.0
// Host memory for communication: whole pages, huge ones where there is room for them, because the first touch of a small page
// costs more than copying it. Every block is remembered, so that only what was given is taken back. Any thread.
#pragma once

#include "core/status.h"
#include "core/types.h"

namespace shoal::device {

// At a multiple of 4096 bytes, all zero; a size of 0 is a null pointer. system_error if the system has not that much.
Result<void*> allocate_host(Bytes size);

// Null is fine. invalid_argument for anything else that allocate_host did not give, or that was freed.
Status free_host(void* start);

}  // namespace shoal::device
