// SPDX-License-Identifier: Apache-2.0
// hwloc, opened when somebody asks what this machine is: few processes of a job do, and all would wait for it and what it needs
// to be loaded. Any thread; stays loaded.
#pragma once

#include <hwloc.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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

  // What this process may use of this machine; null: hwloc cannot tell.
  Topology load() const;
  // All of the host, devices left out, by hwloc's components other than these. (Of another root, if HWLOC_FSROOT says so.)
  Topology load_whole(std::span<const char* const> without) const;

  // Objects of a type that are all of one depth; the root is the machine.
  int count(const Topology& topology, hwloc_obj_type_t type) const;
  hwloc_obj_t at(const Topology& topology, hwloc_obj_type_t type, int index) const;  // 0 <= index < count
  hwloc_obj_t first(const Topology& topology, hwloc_obj_type_t type) const;          // null: there is none
  // Processors that the host leaves to its processes.
  hwloc_const_cpuset_t allowed(const Topology& topology) const { return allowed_(topology.get()); }
  // The members of a finite set up to `highest`, ascending; of null and infinite sets none.
  std::vector<int> numbers_in(hwloc_const_bitmap_t set, int highest) const;
  // From each NUMA node to each, row by row, as the system has them; empty: it does not say.
  std::vector<std::uint64_t> node_distances(const Topology& topology) const;

 private:
  decltype(&hwloc_topology_init) init_ = nullptr;
  decltype(&hwloc_topology_load) load_ = nullptr;
  decltype(&hwloc_topology_destroy) destroy_ = nullptr;
  decltype(&hwloc_get_type_depth) type_depth_ = nullptr;
  decltype(&hwloc_get_nbobjs_by_depth) count_by_depth_ = nullptr;
  decltype(&hwloc_get_obj_by_depth) object_by_depth_ = nullptr;
  decltype(&hwloc_topology_set_flags) set_flags_ = nullptr;
  decltype(&hwloc_topology_set_components) set_components_ = nullptr;
  decltype(&hwloc_topology_set_all_types_filter) set_filter_ = nullptr;
  decltype(&hwloc_topology_set_io_types_filter) set_io_filter_ = nullptr;
  decltype(&hwloc_topology_get_allowed_cpuset) allowed_ = nullptr;
  decltype(&hwloc_bitmap_weight) weight_ = nullptr;
  decltype(&hwloc_bitmap_next) next_ = nullptr;
  decltype(&hwloc_distances_get_by_type) distances_ = nullptr;
  decltype(&hwloc_distances_release) release_distances_ = nullptr;
};

}  // namespace shoal::topo
