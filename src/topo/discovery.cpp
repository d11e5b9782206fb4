// SPDX-License-Identifier: Apache-2.0
#include "topo/discovery.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

#include "topo/gpus.h"
#include "topo/limits.h"
#include "topo/network.h"
#include "topo/processors.h"

namespace shoal::topo {
namespace {

std::string name_of_host(const SystemFiles& files) {
  std::array<char, 256> name = {};
  if (!files.is_this_machine()) return files.line("/proc/sys/kernel/hostname").value_or("unknown");
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// Of what memory can be shared between: one network namespace of one boot. What cannot be read leaves its part empty.
std::string id_of_host(const SystemFiles& files) {
  std::array<char, 64> space = {};
  if (files.is_this_machine() && ::readlink("/proc/self/ns/net", space.data(), space.size() - 1) < 0) space[0] = '\0';
  const std::string boot = files.line("/proc/sys/kernel/random/boot_id").value_or("");
  return boot.empty() && space[0] == '\0' ? "" : boot + "/" + space.data();
}

bool is_virtual(const PciDevice& /*device*/) { return false; }
template <typename Device>
bool is_virtual(const Device& device) {
  return device.pci < 0;
}

// Nodes that a file names but the host does not have are not known; where there is but one, devices are on it.
template <typename Devices>
void place_on_nodes(const Host& host, Devices& devices) {
  for (auto& each : devices) {
    if (node_index(host, each.numa) < 0) each.numa.reset();
    if (host.nodes.size() == 1 && !is_virtual(each)) each.numa = host.nodes.front().number;
  }
}

}  // namespace

Host discover_briefly(const Source& source) {
  const SystemFiles files(source.root);
  Host host;
  host.interfaces = find_interface_speeds(files);
  host.rdma = find_rdma_speeds(files);
  find_several_nodes(files, host);
  return host;
}

Host discover(const Source& source) {
  const SystemFiles files(source.root);
  Host host;
  host.name = name_of_host(files);
  host.id = id_of_host(files);
  find_processors(files, host);
  if (const auto group = cgroup_processors(files)) host.ours = host.ours.within(*group);
  host.limits = find_limits(files);

  PciTree pci(files);
  host.interfaces = find_interfaces(files, pci);
  host.rdma = find_rdma(files, pci);
  const std::unique_ptr<Nvml> own = source.nvml == nullptr && files.is_this_machine() ? open_nvml() : nullptr;
  find_gpus(source.nvml != nullptr ? source.nvml : own.get(), source.driver, pci, host);
  host.pci = pci.take();
  place_on_nodes(host, host.pci);
  place_on_nodes(host, host.interfaces);
  place_on_nodes(host, host.rdma);
  place_on_nodes(host, host.gpus);
  return host;
}

}  // namespace shoal::topo
