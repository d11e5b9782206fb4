// SPDX-License-Identifier: Apache-2.0
#include "topo/gpus.h"

#include <algorithm>
#include <map>
#include <numeric>

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

// The driver's number of each GPU, -1 where it does not have it.
std::vector<int> driver_numbers(CudaDriver* driver, const std::vector<std::string>& bus_ids) {
  std::vector<int> numbers(bus_ids.size(), -1);
  const int count = driver == nullptr ? 0 : std::min(driver->count(), kMostGpus);
  for (int device = 0; device < count; ++device) {
    const auto id = normal_bus_id(driver->bus_id(device).value_or(""));
    const auto found = id ? std::find(bus_ids.begin(), bus_ids.end(), *id) : bus_ids.end();
    if (found != bus_ids.end()) numbers[static_cast<std::size_t>(found - bus_ids.begin())] = device;
  }
  return numbers;
}

// `numbers`: of each GPU in the driver. The driver says what CUDA will do, and is asked first; it may not see all.
void find_reach(Nvml* nvml, CudaDriver* driver, const std::vector<int>& numbers, Host& host) {
  for (std::size_t a = 0; a < host.gpus.size(); ++a) {
    Gpu& gpu = host.gpus[a];
    for (std::size_t b = 0; b < host.gpus.size(); ++b) {
      if (a == b) continue;
      const bool both = numbers[a] >= 0 && numbers[b] >= 0;
      std::optional<bool> reaches = both ? driver->can_reach(numbers[a], numbers[b]) : std::nullopt;
      if (!reaches && nvml != nullptr) reaches = nvml->can_reach(static_cast<int>(a), static_cast<int>(b));
      host.p2p_known |= reaches.has_value();
      if (!reaches.value_or(false)) continue;
      gpu.reaches.push_back(static_cast<int>(b));
      if (const auto rank = both ? driver->performance_rank(numbers[a], numbers[b]) : std::nullopt)
        gpu.performance_ranks.push_back(*rank);
    }
    if (gpu.performance_ranks.size() < gpu.reaches.size()) gpu.performance_ranks.clear();  // of all, or of none
  }
}

// The GPUs that a library tells of; their bus ids.
template <typename Library>
std::vector<std::string> take_gpus(Library& library, int count, PciTree& pci, Host& host) {
  std::vector<std::string> bus_ids;
  for (int g = 0; g < count; ++g) {
    const std::string bus_id = library.bus_id(g).value_or("");
    const PciTree::Place place = pci.place_of_bus_id(bus_id);
    bus_ids.push_back(normal_bus_id(bus_id).value_or(""));
    host.gpus.push_back({.number = g,
                         .name = library.name(g).value_or(""),
                         .memory_bytes = library.memory_bytes(g),
                         .compute_capability = library.compute_capability(g),
                         .links = {},
                         .reaches = {},
                         .performance_ranks = {},
                         .pci = place.pci,
                         .numa = place.numa});
  }
  return bus_ids;
}

}  // namespace

void find_gpus(Nvml* nvml, CudaDriver* driver, PciTree& pci, Host& host) {
  if (const int count = nvml == nullptr ? 0 : std::min(nvml->count(), kMostGpus); count > 0) {
    const std::vector<std::string> bus_ids = take_gpus(*nvml, count, pci, host);
    find_links(*nvml, bus_ids, host);
    find_reach(nvml, driver, driver_numbers(driver, bus_ids), host);
  } else if (const int seen = driver == nullptr ? 0 : std::min(driver->count(), kMostGpus); seen > 0) {
    take_gpus(*driver, seen, pci, host);
    std::vector<int> numbers(host.gpus.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    find_reach(nullptr, driver, numbers, host);
  } else {
    find_unnamed(pci, host);
  }
}

}  // namespace shoal::topo
