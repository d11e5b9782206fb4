// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "topo/files/nccl_xml.h"
#include "topo/files/xml.h"

namespace shoal::topo {
namespace {

// What NCCL writes for a switch whose bus id the driver hides, and the class of NVSwitches.
constexpr const char *kHiddenBusId = "fffffff:ffff:ff", *kSwitchClass = "0x068000";

// As the kernel does: "16.0 GT/s PCIe".
std::string speed_text(double speed_GTs) {
  const std::string tenths = fmt::format("{:.1f}", speed_GTs);
  return (std::stod(tenths) == speed_GTs ? tenths : fmt::format("{}", speed_GTs)) + " GT/s PCIe";
}

class Writer {
 public:
  explicit Writer(const Host& host) : host_(host) {}

  Element write() {
    Element root = element("system");
    root.attributes = {{"version", "1"}};
    for (const NumaNode& node : host_.nodes) root.children.push_back(cpu(node.number, node.processors));
    Element nowhere = cpu(std::nullopt, host_.nodes.empty() ? host_.processors : ProcessorSet());
    if (host_.nodes.empty() || !nowhere.children.empty()) root.children.push_back(std::move(nowhere));
    return root;
  }

 private:
  static Element element(const char* name) { return {.name = name, .attributes = {}, .children = {}}; }

  Element cpu(std::optional<int> node, const ProcessorSet& processors) {
    Element cpu = element("cpu");
    cpu.attributes = {{"numaid", std::to_string(node.value_or(-1))}};
    if (node || !processors.empty()) cpu.attributes.emplace_back("affinity", mask_of(processors));
    if (!host_.architecture.empty()) cpu.attributes.emplace_back("arch", host_.architecture);
    const auto package = std::find_if(host_.packages.begin(), host_.packages.end(),
                                      [&](const Package& each) { return each.processors.covers(processors); });
    if ((node || !processors.empty()) && package != host_.packages.end()) {
      if (!package->vendor.empty()) cpu.attributes.emplace_back("vendor", package->vendor);
      if (package->family) cpu.attributes.emplace_back("familyid", std::to_string(*package->family));
      if (package->model_number) cpu.attributes.emplace_back("modelid", std::to_string(*package->model_number));
    }
    for (std::size_t i = 0; i < host_.pci.size(); ++i)
      if (host_.pci[i].parent < 0 && node_of(static_cast<int>(i)) == node) cpu.children.push_back(pci(static_cast<int>(i)));
    add_nic(cpu, -1, node);
    return cpu;
  }

  // Of a whole tree: bridges often do not say.
  std::optional<int> node_of(int root) const {
    for (std::size_t i = 0; i < host_.pci.size(); ++i)
      if (host_.pci[i].numa && pci_path(host_, static_cast<int>(i)).front() == root) return host_.pci[i].numa;
    return std::nullopt;
  }

  Element pci(int index) {
    const PciDevice& device = host_.pci[static_cast<std::size_t>(index)];
    Element pci = element("pci");
    pci.attributes = {{"busid", device.bus_id},
                      {"class", device.class_code},
                      {"vendor", device.vendor},
                      {"device", device.product},
                      {"link_speed", device.speed_GTs ? speed_text(*device.speed_GTs) : ""},
                      {"link_width", std::to_string(device.width.value_or(0))}};
    for (std::size_t i = 0; i < host_.pci.size(); ++i)
      if (host_.pci[i].parent == index) pci.children.push_back(this->pci(static_cast<int>(i)));
    for (const Gpu& each : host_.gpus)
      if (each.pci == index) pci.children.push_back(gpu(each));
    add_nic(pci, index, std::nullopt);
    return pci;
  }

  Element gpu(const Gpu& gpu) const {
    Element written = element("gpu");
    written.attributes = {{"dev", std::to_string(gpu.number)}};
    if (gpu.compute_capability) written.attributes.emplace_back("sm", std::to_string(*gpu.compute_capability));
    for (const GpuLink& link : gpu.links) {
      const int peer_pci = link.peer == GpuLink::kSwitch ? -1 : host_.gpus[static_cast<std::size_t>(link.peer)].pci;
      if (link.peer != GpuLink::kSwitch && peer_pci < 0) continue;
      Element nvlink = element("nvlink");
      const PciDevice* peer = peer_pci < 0 ? nullptr : &host_.pci[static_cast<std::size_t>(peer_pci)];
      nvlink.attributes = {{"target", peer == nullptr ? kHiddenBusId : peer->bus_id},
                           {"count", std::to_string(link.links)},
                           {"tclass", peer == nullptr ? kSwitchClass : "0x030200"}};
      written.children.push_back(std::move(nvlink));
    }
    std::stable_sort(written.children.begin(), written.children.end(),
                     [](const Element& a, const Element& b) { return *a.attribute("target") < *b.attribute("target"); });
    return written;
  }

  // What hangs on a device, or, for -1, on none but on a node.
  void add_nic(Element& parent, int pci, std::optional<int> node) {
    Element nic = element("nic");
    for (const RdmaDevice& device : host_.rdma) {
      if (device.pci != pci || (pci < 0 && device.numa != node)) continue;
      std::string guid = device.guid;
      guid.erase(std::remove(guid.begin(), guid.end(), ':'), guid.end());
      for (const RdmaPort& port : device.ports) {
        Element net = element("net");
        net.attributes = {{"name", device.name}, {"dev", std::to_string(nets_++)}};
        add_speed(net, port.Mbps);
        net.attributes.emplace_back("port", std::to_string(port.number));
        if (!guid.empty()) net.attributes.emplace_back("guid", "0x" + guid);
        nic.children.push_back(std::move(net));
      }
    }
    for (const Interface& interface : host_.interfaces) {
      if (interface.pci != pci || (pci < 0 && interface.numa != node) || interface.loopback) continue;
      Element net = element("net");
      net.attributes = {{"name", interface.name}, {"dev", std::to_string(nets_++)}};
      add_speed(net, interface.Mbps);
      net.attributes.emplace_back("port", "0");
      nic.children.push_back(std::move(net));
    }
    if (!nic.children.empty()) parent.children.push_back(std::move(nic));
  }
  static void add_speed(Element& net, std::optional<std::int64_t> Mbps) {
    if (Mbps) net.attributes.emplace_back("speed", std::to_string(*Mbps));
  }

  const Host& host_;
  int nets_ = 0;  // written so far
};

}  // namespace

std::string nccl_xml_of(const Host& host) { return text_of(Writer(host).write()); }

}  // namespace shoal::topo
