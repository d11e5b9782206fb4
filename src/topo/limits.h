// SPDX-License-Identifier: Apache-2.0
// What this process is limited to: processor time, shared memory, locked memory.
#pragma once

#include "topo/host.h"
#include "topo/system_files.h"

namespace shoal::topo {

// Sizes of /dev/shm and of locked memory of this machine only.
Limits find_limits(const SystemFiles& files);

// The processors that the process's control groups leave it; nothing where they do not say.
std::optional<ProcessorSet> cgroup_processors(const SystemFiles& files);

}  // namespace shoal::topo
