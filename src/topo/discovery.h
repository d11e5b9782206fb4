// SPDX-License-Identifier: Apache-2.0
// Finds out what this machine is. Nothing that is missing, hidden or contradictory makes it fail.
#pragma once

#include <string>

#include "topo/cuda_driver.h"
#include "topo/host.h"
#include "topo/nvml.h"

namespace shoal::topo {

struct Source {
  std::string root;              // folder in which /sys and /proc are found; "": this machine's
  Nvml* nvml = nullptr;          // asked for GPUs in place of this machine's library
  CudaDriver* driver = nullptr;  // asked who maps whose memory, and for GPUs if nobody else has some; see open_cuda_driver
};

// Always valid. With a root of its own: see find_processors about threads.
Host discover(const Source& source = {});

// Nothing but names, states and speeds of interfaces that have a speed and of RDMA ports, and, if there are several NUMA nodes,
// whose processors are whose: some ten to twenty system calls, for who asks whenever a process starts.
Host discover_briefly(const Source& source = {});

}  // namespace shoal::topo
