// SPDX-License-Identifier: Apache-2.0
// All transports that this build has, in order of preference. Whoever makes links or tests transports iterates this list.
#pragma once

#include <span>

#include "link/link.h"

namespace shoal::transports {

// The transports live until the process ends. Any thread.
std::span<link::Transport* const> transports();

}  // namespace shoal::transports
