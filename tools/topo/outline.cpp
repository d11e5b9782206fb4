// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/outline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/topo/words.h"

namespace shoal::topo_tool {

using namespace topo;

namespace {

class Outline {
 public:
  explicit Outline(const Host& host) : host_(host) {}

  Branch draw() const {
    Branch root{Kind::host, title(), {}};
    std::vector<bool> placed(host_.nodes.size());
    for (const Package& package : host_.packages) {
      Branch branch{Kind::package, package_text(package), {}};
      for (std::size_t n = 0; n < host_.nodes.size(); ++n) {
        if (placed[n] || host_.nodes[n].processors.within(package.processors).empty()) continue;
        placed[n] = true;
        branch.children.push_back(node(host_.nodes[n]));
      }
      // Without nodes the cores are the package's own.
      if (host_.nodes.empty() && !package.processors.empty()) branch.children.push_back(cores(package.processors));
      root.children.push_back(std::move(branch));
    }
    for (std::size_t n = 0; n < host_.nodes.size(); ++n)
      if (!placed[n]) root.children.push_back(node(host_.nodes[n]));
    if (host_.packages.empty() && host_.nodes.empty()) root.children.push_back(cores(host_.processors));
    attached(root, std::nullopt);
    root.children.push_back(limits());
    return root;
  }

 private:
  std::string title() const {
    std::string text = host_.name.empty() ? "host" : "host " + host_.name;
    text += ": " + (host_.architecture.empty() ? "unknown architecture" : host_.architecture);
    return text + ", memory " + (host_.memory_bytes ? bytes_text(*host_.memory_bytes) : "unknown");
  }

  static std::string package_text(const Package& p) {
    std::string model = p.model.empty() ? p.vendor : p.model;
    return fmt::format("package {}: {}, processors {}", p.number, model.empty() ? "unknown model" : model,
                       set_text(p.processors));
  }

  Branch node(const NumaNode& n) const {
    Branch branch{Kind::node,
                  fmt::format("NUMA node {}: {}, processors {}", n.number,
                              n.memory_bytes ? bytes_text(*n.memory_bytes) : "memory unknown", set_text(n.processors)),
                  {}};
    if (!n.distances.empty() && n.distances.size() > 1) branch.text += fmt::format(", distances {}", fmt::join(n.distances, " "));
    if (!n.processors.empty()) branch.children.push_back(cores(n.processors));
    attached(branch, n.number);
    return branch;
  }

  // "8 cores of 2 threads, L1 32 KiB, L2 1 MiB, L3 32 MiB x 2"
  Branch cores(const ProcessorSet& processors) const {
    std::vector<std::string> parts;
    const auto inside = [&](const ProcessorSet& set) { return !set.empty() && processors.covers(set); };
    const auto n = std::count_if(host_.cores.begin(), host_.cores.end(), [&](const Core& c) { return inside(c.processors); });
    parts.push_back(n > 0 ? plural(static_cast<int>(n), "core") : plural(processors.count(), "processor"));
    if (n > 0 && processors.count() > n) parts.back() += fmt::format(", {}", plural(processors.count(), "hardware thread"));
    for (int level = 1; level <= 4; ++level) {
      int caches = 0;
      std::uint64_t bytes = 0;
      for (const Cache& cache : host_.caches) {
        if (cache.level != level || !inside(cache.processors)) continue;
        ++caches;
        bytes = cache.bytes;
      }
      if (caches > 0)
        parts.push_back(fmt::format("L{} {}{}", level, bytes_text(bytes), caches > 1 ? fmt::format(" x {}", caches) : ""));
    }
    if (const ProcessorSet ours = host_.ours.within(processors); !(ours == processors))
      parts.push_back(ours.empty() ? "none of them ours" : "ours: " + text_of(ours));
    return {Kind::cores, fmt::format("{}", fmt::join(parts, ", ")), {}};
  }

  // Devices of a node, or those of which that is unknown.
  void attached(Branch& to, std::optional<int> node) const {
    for (std::size_t i = 0; i < host_.pci.size(); ++i)
      if (host_.pci[i].parent < 0 && node_of_tree(static_cast<int>(i)) == node) bridge(to, static_cast<int>(i), "");
    devices(to, -1, node);
  }
  std::optional<int> node_of_tree(int root) const {
    for (std::size_t i = 0; i < host_.pci.size(); ++i)
      if (host_.pci[i].numa && pci_path(host_, static_cast<int>(i)).front() == root) return host_.pci[i].numa;
    return std::nullopt;
  }

  // Bridges with one thing behind them share a line with it.
  void bridge(Branch& to, int index, std::string before) const {
    const PciDevice& device = host_.pci[static_cast<std::size_t>(index)];
    before += (before.empty() ? "" : " > ") + device.bus_id;
    std::vector<int> below;
    for (std::size_t i = 0; i < host_.pci.size(); ++i)
      if (host_.pci[i].parent == index) below.push_back(static_cast<int>(i));
    Branch branch{Kind::bridge, before + link_text(device), {}};
    devices(branch, index, std::nullopt);
    if (branch.children.empty() && below.size() == 1) return bridge(to, below.front(), before);
    for (const int each : below) bridge(branch, each, "");
    if (branch.children.empty()) branch.text += " " + device.class_code;
    to.children.push_back(std::move(branch));
  }

  void devices(Branch& to, int pci, std::optional<int> node) const {
    const auto here = [&](const auto& each) { return each.pci == pci && (pci >= 0 || each.numa == node); };
    for (const Gpu& each : host_.gpus)
      if (here(each)) to.children.push_back({Kind::gpu, text_of_gpu(each), {}});
    for (const RdmaDevice& each : host_.rdma)
      if (here(each)) to.children.push_back({Kind::rdma, text_of_rdma(each), {}});
    for (const Interface& each : host_.interfaces)
      if (here(each)) to.children.push_back({Kind::interface, text_of_interface(each), {}});
  }

  static std::string text_of_gpu(const Gpu& g) {
    const std::string kind = g.compute_capability ? fmt::format("sm_{}", *g.compute_capability) : "unknown model";
    std::string text = fmt::format("GPU {}: {}", g.number, g.name.empty() ? kind : g.name);
    if (g.memory_bytes) text += ", " + bytes_text(*g.memory_bytes);
    int links = 0;
    for (const GpuLink& link : g.links) links += link.links;
    if (links > 0) text += fmt::format(", {}, {} each way", plural(links, "NVLink"), gigabytes_text(links * nvlink_Bps(g)));
    return text;
  }
  static std::string text_of_rdma(const RdmaDevice& d) {
    std::vector<std::string> ports;
    for (const RdmaPort& p : d.ports) {
      std::string text = fmt::format("port {} {}", p.number, p.Mbps ? rate_text(*p.Mbps) : "speed unknown");
      if (!p.state.empty()) text += " " + p.state;
      if (!p.link_layer.empty()) text += " " + p.link_layer;
      if (!p.gids.empty()) text += fmt::format(" ({})", plural(static_cast<int>(p.gids.size()), "GID"));
      ports.push_back(std::move(text));
    }
    return fmt::format("RDMA {}: {}", d.name, ports.empty() ? "no ports" : fmt::format("{}", fmt::join(ports, "; ")));
  }
  static std::string text_of_interface(const Interface& i) {
    std::string text = i.name + ": ";
    text += i.loopback ? "loopback" : !i.up ? "state unknown" : *i.up ? "up" : "down";
    if (!i.loopback && i.up.value_or(true)) text += i.Mbps ? ", " + rate_text(*i.Mbps) : ", speed unknown";
    if (i.mtu && !i.loopback) text += fmt::format(", MTU {}", *i.mtu);
    if (!i.addresses.empty()) text += fmt::format(", {}", fmt::join(i.addresses, " "));
    return text;
  }
  static std::string link_text(const PciDevice& d) {
    if (!d.speed_GTs || !d.width) return "";
    return fmt::format(" ({} GT/s x{}, {})", *d.speed_GTs, *d.width, gigabytes_text(pci_Bps(d).value_or(0)));
  }

  Branch limits() const {
    const Limits& l = host_.limits;
    const ProcessorSet ours = host_.ours.within(host_.processors);
    Branch branch{Kind::limits, "limits of this process", {}};
    const auto add = [&](std::string text) { branch.children.push_back({Kind::limits, std::move(text), {}}); };
    add(host_.processors.empty() ? "processors: unknown"
                                 : fmt::format("processors: {} of {}", set_text(ours), set_text(host_.processors)));
    add(l.cpu_quota ? fmt::format("CPU quota: {:g} processors' time", *l.cpu_quota) : "CPU quota: none known");
    add(l.shm_bytes ? fmt::format("/dev/shm: {}, {} free", bytes_text(*l.shm_bytes), bytes_text(l.shm_free_bytes.value_or(0)))
                    : "/dev/shm: unknown");
    add(!l.memlock_bytes                         ? "locked memory: unknown"
        : *l.memlock_bytes == Limits::kUnlimited ? "locked memory: unlimited"
                                                 : "locked memory: " + bytes_text(*l.memlock_bytes));
    return branch;
  }

  const Host& host_;
};

void write(std::string& out, const Branch& branch, const std::string& rule, const std::string& below) {
  out += rule + branch.text + "\n";
  for (std::size_t i = 0; i < branch.children.size(); ++i) {
    const bool last = i + 1 == branch.children.size();
    write(out, branch.children[i], below + (last ? "└─ " : "├─ "), below + (last ? "   " : "│  "));
  }
}

}  // namespace

Branch outline(const Host& host) { return Outline(host).draw(); }

std::string tree_text(const Branch& root) {
  std::string out;
  write(out, root, "", "");
  return out;
}

}  // namespace shoal::topo_tool
