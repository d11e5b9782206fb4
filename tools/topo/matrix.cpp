// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "tools/topo/outline.h"

namespace shoal::topo_tool {

using namespace topo;

namespace {

struct Device {
  std::string name;
  int pci;
  std::optional<int> numa;
  int gpu = -1;
};

std::vector<Device> devices_of(const Host& host) {
  std::vector<Device> devices;
  for (std::size_t g = 0; g < host.gpus.size(); ++g) {
    const Gpu& gpu = host.gpus[g];
    devices.push_back({fmt::format("GPU{}", gpu.number), gpu.pci, gpu.numa, static_cast<int>(g)});
  }
  for (const RdmaDevice& each : host.rdma) devices.push_back({each.name, each.pci, each.numa});
  for (const Interface& each : host.interfaces)
    if (each.pci >= 0) devices.push_back({each.name, each.pci, each.numa});
  return devices;
}

int links_to(const Gpu& gpu, int peer) {
  for (const GpuLink& link : gpu.links)
    if (link.peer == peer) return link.links;
  return 0;
}

// Directly, or through the switches that both hang on.
int nvlinks(const Host& host, int a, int b) {
  if (a < 0 || b < 0) return 0;
  const Gpu &from = host.gpus[static_cast<std::size_t>(a)], &to = host.gpus[static_cast<std::size_t>(b)];
  if (const int direct = links_to(from, b); direct > 0) return direct;
  return std::min(links_to(from, GpuLink::kSwitch), links_to(to, GpuLink::kSwitch));
}

std::string cell(const Host& host, const Device& a, const Device& b) {
  if (&a == &b) return "X";
  if (const int links = nvlinks(host, a.gpu, b.gpu); links > 0) return fmt::format("NV{}", links);
  const Distance far = distance(host, a.pci, a.numa, b.pci, b.numa);
  return far == Distance::unknown ? "?" : far == Distance::same ? "same" : std::string(name_of(far));
}

}  // namespace

std::string matrix_text(const Host& host) {
  constexpr std::size_t kMost = 64;
  const std::vector<Device> devices = devices_of(host);
  if (devices.size() < 2 || devices.size() > kMost) return "";
  std::size_t width = 5;
  for (const Device& each : devices) width = std::max(width, each.name.size() + 1);
  std::string text(width, ' ');
  for (const Device& each : devices) text += fmt::format("{:>{}}", each.name, width);
  text += "\n";
  for (const Device& row : devices) {
    text += fmt::format("{:<{}}", row.name, width);
    for (const Device& column : devices) text += fmt::format("{:>{}}", cell(host, row, column), width);
    text += "\n";
  }
  return text;
}

}  // namespace shoal::topo_tool
