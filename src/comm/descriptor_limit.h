// SPDX-License-Identifier: Apache-2.0
// How many descriptors this process may open, and whether a communicator can live with that. Any thread.
#pragma once

#include "core/status.h"
#include "core/types.h"

namespace shoal::comm {

// Raises the soft limit to the hard one, once a process. system_error, early rather than in the middle of a run, if a rank of a
// communicator of this size cannot have a link to every other one; it states need, limit and what is open already.
Status require_descriptors(World world);

}  // namespace shoal::comm
