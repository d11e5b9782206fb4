// SPDX-License-Identifier: Apache-2.0
#include "topo/host.h"

#include <algorithm>
#include <set>

namespace shoal::topo {
namespace {

template <typename Device>
Status check_place(const Host& host, const char* list, std::size_t i, const Device& device) {
  const int devices = static_cast<int>(host.pci.size());
  if (device.pci < -1 || device.pci >= devices)
    return fail(Code::invalid_argument, "{}[{}].pci is {}: there are {} devices", list, i, device.pci, devices);
  if (device.numa && *device.numa < 0)
    return fail(Code::invalid_argument, "{}[{}].numa is {}: a node's number, or left out where it is unknown", list, i,
                *device.numa);
  return {};
}

Status check_pci(const Host& host) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < host.pci.size(); ++i) {
    const PciDevice& device = host.pci[i];
    if (device.parent < -1 || device.parent >= static_cast<int>(i))  // which rules out cycles
      return fail(Code::invalid_argument, "pci[{}] ({}): parent is {}: parents stand before their children, -1 is none", i,
                  device.bus_id, device.parent);
    if (!seen.insert(device.bus_id).second) return fail(Code::invalid_argument, "pci[{}]: {} is there twice", i, device.bus_id);
    if (device.numa && *device.numa < 0)
      return fail(Code::invalid_argument, "pci[{}].numa is {}: a node's number, or left out where it is unknown", i,
                  *device.numa);
  }
  return {};
}

Status check_gpus(const Host& host) {
  const int gpus = static_cast<int>(host.gpus.size());
  for (std::size_t g = 0; g < host.gpus.size(); ++g) {
    for (const GpuLink& link : host.gpus[g].links)
      if (link.peer < GpuLink::kSwitch || link.peer >= gpus || link.peer == static_cast<int>(g) || link.links < 1)
        return fail(Code::invalid_argument, "gpus[{}]: {} links to GPU {}: at least one, to another of {} GPUs or -1, a switch",
                    g, link.links, link.peer, gpus);
    for (const int peer : host.gpus[g].reaches)
      if (peer < 0 || peer >= gpus) return fail(Code::invalid_argument, "gpus[{}] reaches GPU {}: there are {}", g, peer, gpus);
    const Gpu& gpu = host.gpus[g];
    if (!gpu.performance_ranks.empty() && gpu.performance_ranks.size() != gpu.reaches.size())
      return fail(Code::invalid_argument,
                  "gpus[{}].performance_ranks has {} entries: one for each of {} that it reaches, or none", g,
                  gpu.performance_ranks.size(), gpu.reaches.size());
    for (const int rank : gpu.performance_ranks)
      if (rank < 0) return fail(Code::invalid_argument, "gpus[{}].performance_ranks has {}: 0 or more", g, rank);
  }
  return {};
}

Status check_nodes(const Host& host) {
  std::set<int> seen;
  for (std::size_t i = 0; i < host.nodes.size(); ++i) {
    const NumaNode& node = host.nodes[i];
    if (node.number < 0 || !seen.insert(node.number).second)
      return fail(Code::invalid_argument, "nodes[{}].number is {}: a number from 0 on, each once", i, node.number);
    if (!node.distances.empty() && node.distances.size() != host.nodes.size())
      return fail(Code::invalid_argument, "nodes[{}].distances: {} of them, {} nodes", i, node.distances.size(),
                  host.nodes.size());
  }
  return {};
}

// Sizes and speeds are above 0, or unknown.
template <typename Number>
Status check_positive(std::string_view what, const std::optional<Number>& value) {
  if (!value || *value > 0) return {};
  return fail(Code::invalid_argument, "{} is {}: a number above 0, or left out where it is unknown", what, *value);
}

Status check_numbers(const Host& host) {
  if (Status s = check_positive("limits.cpu_quota", host.limits.cpu_quota); !s.is_ok()) return s;
  for (std::size_t i = 0; i < host.pci.size(); ++i)
    for (const Status& s : {check_positive(fmt::format("pci[{}].speed_GTs", i), host.pci[i].speed_GTs),
                            check_positive(fmt::format("pci[{}].width", i), host.pci[i].width)})
      if (!s.is_ok()) return s;
  for (std::size_t i = 0; i < host.interfaces.size(); ++i)
    if (Status s = check_positive(fmt::format("interfaces[{}].Mbps", i), host.interfaces[i].Mbps); !s.is_ok()) return s;
  for (std::size_t i = 0; i < host.rdma.size(); ++i)
    for (const RdmaPort& port : host.rdma[i].ports)
      if (Status s = check_positive(fmt::format("rdma[{}].ports: Mbps", i), port.Mbps); !s.is_ok()) return s;
  return {};
}

int depth_of_common(const std::vector<int>& a, const std::vector<int>& b) {
  std::size_t depth = 0;
  while (depth < a.size() && depth < b.size() && a[depth] == b[depth]) ++depth;
  return static_cast<int>(depth);
}

}  // namespace

Status validate(const Host& host) {
  for (const Status& s : {check_nodes(host), check_pci(host), check_gpus(host), check_numbers(host)})
    if (!s.is_ok()) return s;
  for (std::size_t i = 0; i < host.interfaces.size(); ++i)
    if (Status s = check_place(host, "interfaces", i, host.interfaces[i]); !s.is_ok()) return s;
  for (std::size_t i = 0; i < host.rdma.size(); ++i)
    if (Status s = check_place(host, "rdma", i, host.rdma[i]); !s.is_ok()) return s;
  for (std::size_t i = 0; i < host.gpus.size(); ++i)
    if (Status s = check_place(host, "gpus", i, host.gpus[i]); !s.is_ok()) return s;
  if (!host.processors.covers(host.ours))
    return fail(Code::invalid_argument, "ours is {}: the host has processors {}", text_of(host.ours), text_of(host.processors));
  return {};
}

std::vector<int> pci_path(const Host& host, int device) {
  std::vector<int> path;
  for (int at = device; at >= 0; at = host.pci[static_cast<std::size_t>(at)].parent) path.push_back(at);
  std::reverse(path.begin(), path.end());
  return path;
}

int node_index(const Host& host, std::optional<int> number) {
  if (!number) return -1;
  for (std::size_t i = 0; i < host.nodes.size(); ++i)
    if (host.nodes[i].number == *number) return static_cast<int>(i);
  return -1;
}

std::string_view name_of(Distance distance) {
  switch (distance) {
    case Distance::same: return "same device";
    case Distance::pix: return "PIX";
    case Distance::pxb: return "PXB";
    case Distance::phb: return "PHB";
    case Distance::sys: return "SYS";
    case Distance::unknown: return "unknown";
  }
  return "unknown";
}

Distance distance(const Host& host, int pci_a, std::optional<int> numa_a, int pci_b, std::optional<int> numa_b) {
  if (pci_a >= 0 && pci_a == pci_b) return Distance::same;
  if (pci_a >= 0 && pci_b >= 0) {
    const std::vector<int> a = pci_path(host, pci_a), b = pci_path(host, pci_b);
    if (const int common = depth_of_common(a, b); common > 0) {
      const int hops = static_cast<int>(a.size()) - common + static_cast<int>(b.size()) - common;
      return hops <= 4 ? Distance::pix : Distance::pxb;  // below one switch: its port up, and a port down to each
    }
  }
  if (!numa_a || !numa_b) return Distance::unknown;
  return *numa_a == *numa_b ? Distance::phb : Distance::sys;
}

std::optional<double> pci_Bps(const PciDevice& device) {
  if (!device.speed_GTs || !device.width) return std::nullopt;
  const double coding = *device.speed_GTs <= 5 ? 8.0 / 10 : 128.0 / 130;  // generations 1 and 2 send 10 bits a byte
  return *device.speed_GTs * 1e9 / 8 * coding * *device.width;
}

double nvlink_Bps(const Gpu& gpu) {
  const int capability = gpu.compute_capability.value_or(80);
  if (capability >= 100) return 50e9;  // NVLink 5
  return capability >= 70 ? 25e9 : 20e9;
}

}  // namespace shoal::topo
