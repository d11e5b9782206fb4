// SPDX-License-Identifier: Apache-2.0
// GPUs: from NVIDIA's management library where it is, else from CUDA's driver, else as PCI devices without further knowledge.
#pragma once

#include "topo/cuda_driver.h"
#include "topo/host.h"
#include "topo/nvml.h"
#include "topo/pci.h"

namespace shoal::topo {

// Fills in the host's GPUs. Either library may be null.
void find_gpus(Nvml* nvml, CudaDriver* driver, PciTree& pci, Host& host);

}  // namespace shoal::topo
