// SPDX-License-Identifier: Apache-2.0
// GPUs: from NVIDIA's management library where it is, else as PCI devices without further knowledge.
#pragma once

#include "topo/host.h"
#include "topo/nvml.h"
#include "topo/pci.h"

namespace shoal::topo {

// Fills in the host's GPUs. `nvml` may be null.
void find_gpus(Nvml* nvml, PciTree& pci, Host& host);

}  // namespace shoal::topo
