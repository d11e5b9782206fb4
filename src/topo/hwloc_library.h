// SPDX-License-Identifier: Apache-2.0
// hwloc, opened when somebody asks what this machine is: few processes of a job do, and all would wait for it and what it needs
// to be loaded. Any thread; stays loaded.
#pragma once

#include <hwloc.h>

#include <memory>

namespace shoal::topo {

class HwlocLibrary {
 public:
  // Null: it is not there, or not of this version.
  static const HwlocLibrary* open();

  struct Close {
    const HwlocLibrary* library;
    void operator()(hwloc_topology_t topology) const { library->destroy_(topology); }
  };
  using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Close>;

  // Of this machine; null: hwloc cannot tell.
  Topology load() const;
  // Objects of a type that are all of one depth; the root is the machine.
  int count(const Topology& topology, hwloc_obj_type_t type) const;
  hwloc_obj_t first(const Topology& topology, hwloc_obj_type_t type) const;

 private:
  decltype(&hwloc_topology_init) init_ = nullptr;
  decltype(&hwloc_topology_load) load_ = nullptr;
  decltype(&hwloc_topology_destroy) destroy_ = nullptr;
  decltype(&hwloc_get_type_depth) type_depth_ = nullptr;
  decltype(&hwloc_get_nbobjs_by_depth) count_by_depth_ = nullptr;
  decltype(&hwloc_get_obj_by_depth) object_by_depth_ = nullptr;
};

}  // namespace shoal::topo
