// SPDX-License-Identifier: Apache-2.0
#include "topo/machine.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <fstream>
#include <memory>

#include "link/socket.h"

namespace shoal::topo {
namespace {

using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, decltype(&hwloc_topology_destroy)>;

Topology load() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {nullptr, hwloc_topology_destroy};
  Topology topology(raw, hwloc_topology_destroy);
  if (hwloc_topology_load(raw) != 0) topology.reset();
  return topology;
}

int count(hwloc_topology_t topology, hwloc_obj_type_t type) { return std::max(0, hwloc_get_nbobjs_by_type(topology, type)); }

std::string size_text(std::uint64_t bytes) {
  if (bytes >= (1ULL << 30)) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
  if (bytes >= (1ULL << 20)) return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{} KiB", bytes >> 10);
}

std::string cache_text(hwloc_topology_t topology, hwloc_obj_type_t type, std::string_view name) {
  const hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
  if (cache == nullptr || cache->attr == nullptr || cache->attr->cache.size == 0) return "";
  const int n = count(topology, type);
  return fmt::format(", {} {}{}", name, size_text(cache->attr->cache.size), n > 1 ? fmt::format(" x {}", n) : "");
}

std::string processors(hwloc_topology_t topology) {
  const hwloc_obj_t root = hwloc_get_root_obj(topology);
  const char* model = hwloc_obj_get_info_by_name(root, "CPUModel");
  if (const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0); package != nullptr && model == nullptr)
    model = hwloc_obj_get_info_by_name(package, "CPUModel");
  return fmt::format("processors  {} cores, {} hardware threads allowed{}{}{}\n", count(topology, HWLOC_OBJ_CORE),
                     count(topology, HWLOC_OBJ_PU), model != nullptr ? fmt::format(", {}", model) : "",
                     cache_text(topology, HWLOC_OBJ_L2CACHE, "L2"), cache_text(topology, HWLOC_OBJ_L3CACHE, "L3"));
}

std::string memory(hwloc_topology_t topology) {
  const hwloc_obj_t root = hwloc_get_root_obj(topology);
  std::string huge;
  if (std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled"); std::getline(file, huge)) {
    const auto open = huge.find('['), close = huge.find(']');
    huge = open != std::string::npos && close > open ? ", huge pages: " + huge.substr(open + 1, close - open - 1) : "";
  }
  return fmt::format("memory      {}, {} NUMA node{}{}\n", size_text(root->total_memory), count(topology, HWLOC_OBJ_NUMANODE),
                     count(topology, HWLOC_OBJ_NUMANODE) == 1 ? "" : "s", huge);
}

std::string network() {
  const auto addresses = link::usable_addresses("", "");
  if (!addresses.is_ok()) return "network     no usable interface\n";
  std::string names;
  for (const link::InterfaceAddress& each : *addresses) names += (names.empty() ? "" : ", ") + each.interface;
  return fmt::format("network     {}\n", names);
}

}  // namespace

std::string describe_machine() {
  const Topology topology = load();
  const std::string machine =
      topology == nullptr ? "processors  unknown\nmemory      unknown\n" : processors(topology.get()) + memory(topology.get());
  return machine + network();
}

}  // namespace shoal::topo
