// SPDX-License-Identifier: Apache-2.0
// Network interfaces and RDMA devices, as the kernel tells of them; nothing is opened.
#pragma once

#include "topo/host.h"
#include "topo/pci.h"
#include "topo/system_files.h"

namespace shoal::topo {

// By name. Addresses, and interfaces where there is no /sys, of this machine only.
std::vector<Interface> find_interfaces(const SystemFiles& files, PciTree& pci);
std::vector<RdmaDevice> find_rdma(const SystemFiles& files, PciTree& pci);

// As little as discover_briefly is for.
std::vector<Interface> find_interface_speeds(const SystemFiles& files);
std::vector<RdmaDevice> find_rdma_speeds(const SystemFiles& files);

}  // namespace shoal::topo
