// SPDX-License-Identifier: Apache-2.0
#include "topo/machine.h"

#include <fmt/format.h>

#include <fstream>

#include "link/socket.h"
#include "topo/hwloc_library.h"

namespace shoal::topo {
namespace {

using Topology = HwlocLibrary::Topology;

std::string cache_text(const HwlocLibrary& hwloc, const Topology& topology, hwloc_obj_type_t type, std::string_view name) {
  const hwloc_obj_t cache = hwloc.first(topology, type);
  if (cache == nullptr || cache->attr == nullptr || cache->attr->cache.size == 0) return "";
  const int n = hwloc.count(topology, type);
  return fmt::format(", {} {}{}", name, size_text(cache->attr->cache.size), n > 1 ? fmt::format(" x {}", n) : "");
}

std::string processors(const HwlocLibrary& hwloc, const Topology& topology) {
  const hwloc_obj_t root = hwloc.first(topology, HWLOC_OBJ_MACHINE);
  const char* model = hwloc_obj_get_info_by_name(root, "CPUModel");
  if (const hwloc_obj_t package = hwloc.first(topology, HWLOC_OBJ_PACKAGE); package != nullptr && model == nullptr)
    model = hwloc_obj_get_info_by_name(package, "CPUModel");
  return fmt::format("processors  {} cores, {} hardware threads allowed{}{}{}\n", hwloc.count(topology, HWLOC_OBJ_CORE),
                     hwloc.count(topology, HWLOC_OBJ_PU), model != nullptr ? fmt::format(", {}", model) : "",
                     cache_text(hwloc, topology, HWLOC_OBJ_L2CACHE, "L2"), cache_text(hwloc, topology, HWLOC_OBJ_L3CACHE, "L3"));
}

std::string memory(const HwlocLibrary& hwloc, const Topology& topology) {
  const hwloc_obj_t root = hwloc.first(topology, HWLOC_OBJ_MACHINE);
  std::string huge;
  if (std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled"); std::getline(file, huge)) {
    const auto open = huge.find('['), close = huge.find(']');
    huge = open != std::string::npos && close > open ? ", huge pages: " + huge.substr(open + 1, close - open - 1) : "";
  }
  return fmt::format("memory      {}, {} NUMA node{}{}\n", size_text(root->total_memory),
                     hwloc.count(topology, HWLOC_OBJ_NUMANODE), hwloc.count(topology, HWLOC_OBJ_NUMANODE) == 1 ? "" : "s", huge);
}

std::string network() {
  const auto addresses = link::usable_addresses("", "");
  if (!addresses.is_ok()) return "network     no usable interface\n";
  std::string names;
  for (const link::InterfaceAddress& each : *addresses) names += (names.empty() ? "" : ", ") + each.interface;
  return fmt::format("network     {}\n", names);
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  if (bytes >= (1ULL << 30)) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
  if (bytes >= (1ULL << 20)) return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{} KiB", bytes >> 10);
}

std::string describe_machine() {
  const HwlocLibrary* const hwloc = HwlocLibrary::open();
  const Topology topology = hwloc != nullptr ? hwloc->load() : Topology(nullptr, {nullptr});
  const std::string machine = topology == nullptr ? "processors  unknown\nmemory      unknown\n"
                                                  : processors(*hwloc, topology) + memory(*hwloc, topology);
  return machine + network();
}

}  // namespace shoal::topo
