// SPDX-License-Identifier: Apache-2.0
#include "topo/gpus.h"

#include <algorithm>
#include <map>

namespace shoal::topo {
namespace {

constexpr int kMostGpus = 1024;
constexpr std::string_view kNvidia = "0x10de";

// GPUs that no library tells of. 0x0300 are displays of any maker, the board's own among them: they compute nothing for us.
void find_unnamed(PciTree& pci, Host& host) {
  for (const std::string& bus_id : pci.with_class("0x03")) {
    const PciTree::Place place = pci.place_of_bus_id(bus_id);
    if (place.pci < 0 || pci.devices()[static_cast<std::size_t>(place.pci)].vendor != kNvidia) continue;
    if (host.gpus.size() < kMostGpus)
      host.gpus.push_back({.number = static_cast<int>(host.gpus.size()), .pci = place.pci, .numa = place.numa});
  }
}

void find_links(Nvml& nvml, const std::vector<std::string>& bus_ids, Host& host) {
  for (std::size_t g = 0; g < host.gpus.size(); ++g) {
    std::map<int, int> bundles;
    for (int link = 0; link < Nvml::kMostLinks; ++link) {
      const auto peer = nvml.link_peer(static_cast<int>(g), link);
      if (!peer) continue;
      // What is no GPU of ours is a switch; where the library hides its bus id, too.
      const auto id = normal_bus_id(*peer);
      const auto found = id ? std::find(bus_ids.begin(), bus_ids.end(), *id) : bus_ids.end();
      ++bundles[found == bus_ids.end() ? GpuLink::kSwitch : static_cast<int>(found - bus_ids.begin())];
    }
    for (const auto& [peer, links] : bundles)
      if (peer != static_cast<int>(g)) host.gpus[g].links.push_back({peer, links});
  }
}

void find_reach(Nvml& nvml, Host& host) {
  for (std::size_t a = 0; a < host.gpus.size(); ++a)
    for (std::size_t b = 0; b < host.gpus.size(); ++b) {
      if (a == b) continue;
      const auto reaches = nvml.can_reach(static_cast<int>(a), static_cast<int>(b));
      host.p2p_known |= reaches.has_value();
      if (reaches.value_or(false)) host.gpus[a].reaches.push_back(static_cast<int>(b));
    }
}

}  // namespace

void find_gpus(Nvml* nvml, PciTree& pci, Host& host) {
  const int count = nvml == nullptr ? 0 : std::min(nvml->count(), kMostGpus);
  if (count <= 0) return find_unnamed(pci, host);
  std::vector<std::string> bus_ids;
  for (int g = 0; g < count; ++g) {
    const std::string bus_id = nvml->bus_id(g).value_or("");
    const PciTree::Place place = pci.place_of_bus_id(bus_id);
    bus_ids.push_back(normal_bus_id(bus_id).value_or(""));
    host.gpus.push_back({.number = g,
                         .name = nvml->name(g).value_or(""),
                         .memory_bytes = nvml->memory_bytes(g),
                         .compute_capability = nvml->compute_capability(g),
                         .links = {},
                         .reaches = {},
                         .pci = place.pci,
                         .numa = place.numa});
  }
  find_links(*nvml, bus_ids, host);
  find_reach(*nvml, host);
}

}  // namespace shoal::topo
