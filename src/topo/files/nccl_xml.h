// SPDX-License-Identifier: Apache-2.0
// Topologies as NCCL's files have them (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): a <cpu> for each NUMA node, the PCI tree below it,
// <gpu> and <nic> in the devices. Such a file knows neither cores nor addresses nor limits. Pure.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "topo/host.h"

namespace shoal::topo {

// invalid_argument says line and reason: an element or a number that has no place there, a bus id that is twice in the file, a
// link to a GPU that is not. Attributes that NCCL may add are left alone. Any bytes may be handed in.
Result<Host> parse_nccl_xml(std::string_view text);

// parse_nccl_xml gives a host that is written in the same way again.
std::string nccl_xml_of(const Host& host);

}  // namespace shoal::topo
