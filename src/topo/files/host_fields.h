// SPDX-License-Identifier: Apache-2.0
// The names of a host's fields, told once for whoever reads or writes them. `to` takes each field by the kind that it is of:
//   always   is written even if it is 0           put    left out if it is unknown or empty
//   index    left out below 0, which is none      flag   left out if false
//   list     of objects, left out if empty        part   an object inside
//   bounded  a size, or a flag for "no limit"
#pragma once

#include <concepts>

#include "topo/host.h"

namespace shoal::topo {

// A model, to be written, or to be filled in.
template <typename T, typename Model>
concept Of = std::same_as<std::remove_const_t<T>, Model>;

void tell(auto& to, Of<Package> auto& package) {
  to.always("number", package.number);
  to.put("model", package.model);
  to.put("vendor", package.vendor);
  to.put("family", package.family);
  to.put("model_number", package.model_number);
  to.put("processors", package.processors);
}

void tell(auto& to, Of<Core> auto& core) { to.put("processors", core.processors); }

void tell(auto& to, Of<Cache> auto& cache) {
  to.always("level", cache.level);
  to.always("bytes", cache.bytes);
  to.put("processors", cache.processors);
}

void tell(auto& to, Of<NumaNode> auto& node) {
  to.always("number", node.number);
  to.put("memory_bytes", node.memory_bytes);
  to.put("processors", node.processors);
  to.put("distances", node.distances);
}

void tell(auto& to, Of<PciDevice> auto& device) {
  to.always("bus_id", device.bus_id);
  to.index("parent", device.parent);
  to.put("class_code", device.class_code);
  to.put("vendor", device.vendor);
  to.put("product", device.product);
  to.put("speed_GTs", device.speed_GTs);
  to.put("most_GTs", device.most_GTs);
  to.put("width", device.width);
  to.put("most_width", device.most_width);
  to.put("numa", device.numa);
}

void tell(auto& to, Of<Interface> auto& interface) {
  to.always("name", interface.name);
  to.put("up", interface.up);
  to.flag("loopback", interface.loopback);
  to.put("Mbps", interface.Mbps);
  to.put("mtu", interface.mtu);
  to.put("addresses", interface.addresses);
  to.index("pci", interface.pci);
  to.put("numa", interface.numa);
}

void tell(auto& to, Of<Gid> auto& gid) {
  to.always("index", gid.index);
  to.put("gid", gid.gid);
  to.put("type", gid.type);
  to.put("interface", gid.interface);
}

void tell(auto& to, Of<RdmaPort> auto& port) {
  to.always("number", port.number);
  to.put("state", port.state);
  to.put("link_layer", port.link_layer);
  to.put("Mbps", port.Mbps);
  to.list("gids", port.gids);
}

void tell(auto& to, Of<RdmaDevice> auto& device) {
  to.always("name", device.name);
  to.put("guid", device.guid);
  to.list("ports", device.ports);
  to.index("pci", device.pci);
  to.put("numa", device.numa);
}

void tell(auto& to, Of<GpuLink> auto& link) {
  to.index("peer", link.peer);
  to.always("links", link.links);
}

void tell(auto& to, Of<Gpu> auto& gpu) {
  to.always("number", gpu.number);
  to.put("name", gpu.name);
  to.put("memory_bytes", gpu.memory_bytes);
  to.put("compute_capability", gpu.compute_capability);
  to.list("links", gpu.links);
  to.put("reaches", gpu.reaches);
  to.put("performance_ranks", gpu.performance_ranks);
  to.index("pci", gpu.pci);
  to.put("numa", gpu.numa);
}

void tell(auto& to, Of<Limits> auto& limits) {
  to.put("cpu_quota", limits.cpu_quota);
  to.put("shm_bytes", limits.shm_bytes);
  to.put("shm_free_bytes", limits.shm_free_bytes);
  to.bounded("memlock_bytes", "memlock_unlimited", limits.memlock_bytes, Limits::kUnlimited);
}

void tell(auto& to, Of<Host> auto& host) {
  to.put("name", host.name);
  to.put("id", host.id);
  to.put("architecture", host.architecture);
  to.put("processors", host.processors);
  to.put("ours", host.ours);
  to.put("memory_bytes", host.memory_bytes);
  to.part("limits", host.limits);
  to.list("packages", host.packages);
  to.list("cores", host.cores);
  to.list("caches", host.caches);
  to.list("nodes", host.nodes);
  to.list("pci", host.pci);
  to.list("interfaces", host.interfaces);
  to.list("rdma", host.rdma);
  to.list("gpus", host.gpus);
  to.flag("p2p_known", host.p2p_known);
}

}  // namespace shoal::topo
