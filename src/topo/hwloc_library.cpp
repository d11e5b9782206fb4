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
    const bool complete = find(library, "hwloc_topology_init", it.init_) && find(library, "hwloc_topology_load", it.load_) &&
                          find(library, "hwloc_topology_destroy", it.destroy_) &&
                          find(library, "hwloc_get_type_depth", it.type_depth_) &&
                          find(library, "hwloc_get_nbobjs_by_depth", it.count_by_depth_) &&
                          find(library, "hwloc_get_obj_by_depth", it.object_by_depth_);
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

int HwlocLibrary::count(const Topology& topology, hwloc_obj_type_t type) const {
  const int depth = type_depth_(topology.get(), type);
  if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE) return 0;
  return static_cast<int>(count_by_depth_(topology.get(), depth));
}

hwloc_obj_t HwlocLibrary::first(const Topology& topology, hwloc_obj_type_t type) const {
  return count(topology, type) > 0 ? object_by_depth_(topology.get(), type_depth_(topology.get(), type), 0) : nullptr;
}

}  // namespace shoal::topo
