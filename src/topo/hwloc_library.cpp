// SPDX-License-Identifier: Apache-2.0
#include "topo/hwloc_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <optional>

namespace shoal::topo {
namespace {

constexpr const char* kFile = "libhwloc.so.15";  // hwloc 2

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

const HwlocLibrary* HwlocLibrary::open() {
  static const std::optional<HwlocLibrary> opened = []() -> std::optional<HwlocLibrary> {
    void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return {};
    HwlocLibrary it;
    const bool complete =
        find(library, "hwloc_topology_init", it.init_) && find(library, "hwloc_topology_load", it.load_) &&
        find(library, "hwloc_topology_destroy", it.destroy_) && find(library, "hwloc_get_type_depth", it.type_depth_) &&
        find(library, "hwloc_get_nbobjs_by_depth", it.count_by_depth_) &&
        find(library, "hwloc_get_obj_by_depth", it.object_by_depth_) &&
        find(library, "hwloc_topology_set_flags", it.set_flags_) &&
        find(library, "hwloc_topology_set_components", it.set_components_) &&
        find(library, "hwloc_topology_set_all_types_filter", it.set_filter_) &&
        find(library, "hwloc_topology_set_io_types_filter", it.set_io_filter_) &&
        find(library, "hwloc_topology_get_allowed_cpuset", it.allowed_) && find(library, "hwloc_bitmap_weight", it.weight_) &&
        find(library, "hwloc_bitmap_next", it.next_) && find(library, "hwloc_distances_get_by_type", it.distances_) &&
        find(library, "hwloc_distances_release", it.release_distances_);
    return complete ? std::optional(it) : std::nullopt;
  }();
  return opened ? &*opened : nullptr;
}

HwlocLibrary::Topology HwlocLibrary::load() const {
  hwloc_topology_t raw = nullptr;
  if (init_(&raw) != 0) return {nullptr, {this}};
  Topology topology(raw, {this});
  if (load_(raw) != 0) topology.reset();
  return topology;
}

HwlocLibrary::Topology HwlocLibrary::load_whole(std::span<const char* const> without) const {
  hwloc_topology_t raw = nullptr;
  if (init_(&raw) != 0) return {nullptr, {this}};
  Topology topology(raw, {this});
  for (const char* component : without) set_components_(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  set_flags_(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  set_filter_(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  set_io_filter_(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (load_(raw) != 0) topology.reset();
  return topology;
}

int HwlocLibrary::count(const Topology& topology, hwloc_obj_type_t type) const {
  const int depth = type_depth_(topology.get(), type);
  if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE) return 0;
  return static_cast<int>(count_by_depth_(topology.get(), depth));
}

hwloc_obj_t HwlocLibrary::at(const Topology& topology, hwloc_obj_type_t type, int index) const {
  return object_by_depth_(topology.get(), type_depth_(topology.get(), type), static_cast<unsigned>(index));
}

hwloc_obj_t HwlocLibrary::first(const Topology& topology, hwloc_obj_type_t type) const {
  return count(topology, type) > 0 ? at(topology, type, 0) : nullptr;
}

std::vector<int> HwlocLibrary::numbers_in(hwloc_const_bitmap_t set, int highest) const {
  std::vector<int> numbers;
  if (set != nullptr && weight_(set) >= 0)
    for (int n = next_(set, -1); n >= 0 && n <= highest; n = next_(set, n)) numbers.push_back(n);
  return numbers;
}

std::vector<std::uint64_t> HwlocLibrary::node_distances(const Topology& topology) const {
  std::vector<std::uint64_t> values;
  unsigned found = 1;
  hwloc_distances_s* distances = nullptr;
  if (distances_(topology.get(), HWLOC_OBJ_NUMANODE, &found, &distances, HWLOC_DISTANCES_KIND_FROM_OS, 0) != 0 || found == 0)
    return values;
  values.assign(distances->values, distances->values + std::size_t{distances->nbobjs} * distances->nbobjs);
  release_distances_(topology.get(), distances);
  return values;
}

}  // namespace shoal::topo
