// SPDX-License-Identifier: Apache-2.0
// Which stream a cudaStream_t of the caller means.
#pragma once

#include <nccl.h>

#include <memory>

#include "core/status.h"
#include "device/stream.h"

namespace shoal::api {

// Null for the null stream. invalid_argument for a pointer that shoalStreamCreate did not give, or that was destroyed.
Result<std::shared_ptr<device::Stream>> find_stream(cudaStream_t stream);

}  // namespace shoal::api
