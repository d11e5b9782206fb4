// SPDX-License-Identifier: Apache-2.0
// Packages, cores, caches, NUMA nodes and memory, as hwloc finds them.
#pragma once

#include "topo/host.h"
#include "topo/system_files.h"

namespace shoal::topo {

// Fills in the host's processors and memory. Under another root hwloc is told so by an environment variable: then no other thread
// may read or change the environment.
void find_processors(const SystemFiles& files, Host& host);

// Nothing but the nodes' processors, and ours, of a machine that has several nodes: a few small files, without hwloc.
void find_several_nodes(const SystemFiles& files, Host& host);

}  // namespace shoal::topo
