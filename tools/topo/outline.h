// SPDX-License-Identifier: Apache-2.0
// A host as a tree of short texts, as people think of it: packages, in them NUMA nodes, in these cores and what is attached. Text
// and picture are made of it. Pure.
#pragma once

#include <string>
#include <vector>

#include "topo/host.h"

namespace shoal::topo_tool {

enum class Kind : std::uint8_t { host, package, node, cores, bridge, gpu, rdma, interface, limits };

struct Branch {
  Kind kind = Kind::host;
  std::string text;
  std::vector<Branch> children;
};

Branch outline(const topo::Host& host);

// Lines with rules in front, as `tree` has them.
std::string tree_text(const Branch& root);

// Who is how far from whom: GPUs, RDMA devices and interfaces on PCI, in the words of nvidia-smi: NV4 for four NVLinks, PIX, PXB,
// PHB, SYS. Empty where there are less than two of them.
std::string matrix_text(const topo::Host& host);

// Which GPU maps whose memory: no, yes, or yes and the performance rank of the way. Empty where that is not known of any.
std::string p2p_text(const topo::Host& host);

}  // namespace shoal::topo_tool
