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

std::string p2p_cell(const Gpu& gpu, int peer) {
  const auto found = std::find(gpu.reaches.begin(), gpu.reaches.end(), peer);
  if (found == gpu.reaches.end()) return "no";
  if (gpu.performance_ranks.empty()) return "yes";
  return fmt::format("yes/{}", gpu.performance_ranks[static_cast<std::size_t>(found - gpu.reaches.begin())]);
}

constexpr std::size_t kMost = 64;  // devices, beyond which nobody reads a matrix

// `cell(row, column)` for each two names, in columns of `width` or more.
template <typename Cell>
std::string table(const std::string& corner, std::size_t width, const std::vector<std::string>& names, Cell cell) {
  for (const std::string& each : names) width = std::max(width, each.size() + 1);
  std::string text = fmt::format("{:<{}}", corner, width);
  for (const std::string& each : names) text += fmt::format("{:>{}}", each, width);
  text += "\n";
  for (std::size_t row = 0; row < names.size(); ++row) {
    text += fmt::format("{:<{}}", names[row], width);
    for (std::size_t column = 0; column < names.size(); ++column) text += fmt::format("{:>{}}", cell(row, column), width);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string matrix_text(const Host& host) {
  const std::vector<Device> devices = devices_of(host);
  if (devices.size() < 2 || devices.size() > kMost) return "";
  std::vector<std::string> names;
  for (const Device& each : devices) names.push_back(each.name);
  return table("", 5, names, [&](std::size_t a, std::size_t b) { return cell(host, devices[a], devices[b]); });
}

std::string p2p_text(const Host& host) {
  if (!host.p2p_known || host.gpus.size() < 2 || host.gpus.size() > kMost) return "";
  std::vector<std::string> names;
  for (const Gpu& each : host.gpus) names.push_back(fmt::format("GPU{}", each.number));
  return table("P2P", 7, names,
               [&](std::size_t a, std::size_t b) { return a == b ? "X" : p2p_cell(host.gpus[a], static_cast<int>(b)); });
}

}  // namespace shoal::topo_tool
