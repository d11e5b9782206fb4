// SPDX-License-Identifier: Apache-2.0
// ncclConfig_t as it comes from callers built against other versions of the header.
#pragma once

#include <nccl.h>

#include "core/status.h"

namespace shoal::api {

// Reads at most the caller's `size` bytes; fields newer than the caller's `version`, and undefined ones, take their defaults.
// NULL: all defaults. invalid_argument for a wrong magic, a size that holds no header, or a value out of range.
Result<ncclConfig_t> read_config(const ncclConfig_t* config);

}  // namespace shoal::api
