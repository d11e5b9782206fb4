// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "topo/files/nccl_xml.h"
#include "topo/files/xml.h"
#include "topo/pci.h"

namespace shoal::topo {
namespace {

constexpr std::string_view kGpuClass = "0x03";

class Reader {
 public:
  Result<Host> read(const Element& root) {
    if (root.name != "system") refuse(root, "the outermost element is <system>");
    if (const std::string* version = root.attribute("version"); version != nullptr && *version != "1")
      refuse(root, fmt::format("version {}: only version 1 is known", *version));
    for (const Element& child : root.children) child.name == "cpu" ? cpu(child) : misplaced(child, "<cpu>");
    for (const auto& [gpu, links] : links_of_) links_to(gpu, *links);
    if (!failure_.is_ok()) return failure_;
    host_.ours = host_.processors = ProcessorSet(std::move(processors_));
    if (Status s = validate(host_); !s.is_ok()) return s;
    return std::move(host_);
  }

 private:
  void refuse(const Element& where, std::string_view why) {
    if (failure_.is_ok()) failure_ = fail(Code::invalid_argument, "line {}: <{}>: {}", where.line, where.name, why);
  }
  void misplaced(const Element& element, std::string_view allowed) {
    refuse(element, fmt::format("only {} may be here", allowed));
  }

  std::string text(const Element& element, std::string_view key) {
    const std::string* value = element.attribute(key);
    return value == nullptr ? "" : *value;
  }
  // Nothing where it is not there.
  template <typename Number>
  std::optional<Number> number(const Element& element, std::string_view key, Number low, Number high) {
    const std::string* value = element.attribute(key);
    if (value == nullptr) return std::nullopt;
    Number read{};
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), read);
    if (error == std::errc{} && end == value->data() + value->size() && read >= low && read <= high) return read;
    refuse(element, fmt::format("{}=\"{}\" is no number from {} to {}", key, value->substr(0, 40), low, high));
    return std::nullopt;
  }
  // "16.0 GT/s PCIe", "8 GT/s"; empty is unknown, and so are other words than numbers, which the kernel writes ("Unknown").
  std::optional<double> speed(const Element& element) {
    const std::string value = text(element, "link_speed");
    double read = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), read).ec != std::errc{}) return std::nullopt;
    if (read >= 0 && read <= 1e4) return read > 0 ? std::optional(read) : std::nullopt;
    refuse(element, fmt::format("link_speed=\"{}\" is no number of GT/s", value.substr(0, 40)));
    return std::nullopt;
  }

  void cpu(const Element& element) {
    const std::optional<int> id = number(element, "numaid", -1, ProcessorSet::kHighest);
    if (!id) return refuse(element, "numaid is missing");
    numa_ = *id < 0 ? std::nullopt : id;  // -1 is unknown, and no index
    const std::string hash = text(element, "host_hash");
    if (!hash.empty() && !hash_.empty() && hash != hash_) refuse(element, "another host_hash: a file describes one host");
    hash_ = hash_.empty() ? hash : hash_;

    const auto processors = parse_mask(element.attribute("affinity") == nullptr ? "0" : text(element, "affinity"));
    if (!processors.is_ok()) return refuse(element, fmt::format("affinity={}", processors.status().text()));
    if (numa_ && node_index(host_, numa_) >= 0) refuse(element, fmt::format("numaid {} is there twice", *id));
    if (numa_) host_.nodes.push_back({.number = *numa_, .processors = *processors});
    if (numa_ || !processors->empty())
      host_.packages.push_back({.number = static_cast<int>(host_.packages.size()),
                                .vendor = text(element, "vendor"),
                                .family = number(element, "familyid", 0, 1 << 20),
                                .model_number = number(element, "modelid", 0, 1 << 20),
                                .processors = *processors});
    processors_.insert(processors_.end(), processors->numbers().begin(), processors->numbers().end());
    if (host_.architecture.empty()) host_.architecture = text(element, "arch");
    for (const Element& child : element.children) {
      if (child.name == "pci")
        pci(child, -1);
      else if (child.name == "nic")
        nic(child, -1);
      else
        misplaced(child, "<pci> and <nic>");
    }
  }

  void pci(const Element& element, int parent) {
    const auto bus_id = normal_bus_id(text(element, "busid"));
    if (!bus_id)
      return refuse(element, fmt::format("busid=\"{}\" is no bus id such as 0000:3b:00.0", text(element, "busid").substr(0, 40)));
    if (!lines_.emplace(*bus_id, element.line).second)
      return refuse(element, fmt::format("busid {} is in line {}, too", *bus_id, lines_.at(*bus_id)));
    const int index = static_cast<int>(host_.pci.size());
    host_.pci.push_back({.bus_id = *bus_id,
                         .parent = parent,
                         .class_code = text(element, "class"),
                         .vendor = text(element, "vendor"),
                         .product = text(element, "device"),
                         .speed_GTs = speed(element),
                         .width = number(element, "link_width", 0, 64),
                         .numa = numa_});
    if (host_.pci.back().width == 0) host_.pci.back().width.reset();
    for (const Element& child : element.children) {
      if (child.name == "pci")
        pci(child, index);
      else if (child.name == "gpu")
        gpu(child, index);
      else if (child.name == "nic")
        nic(child, index);
      else if (child.name != "pcilink")  // GPUs that see each other through a switch: the tree says so, too
        misplaced(child, "<pci>, <gpu>, <nic> and <pcilink>");
    }
  }

  void gpu(const Element& element, int pci) {
    host_.gpus.push_back({.number = number(element, "dev", 0, 1 << 20).value_or(static_cast<int>(host_.gpus.size())),
                          .compute_capability = number(element, "sm", 0, 10'000),
                          .links = {},
                          .reaches = {},
                          .performance_ranks = {},
                          .pci = pci,
                          .numa = numa_});
    links_of_.emplace_back(host_.gpus.size() - 1, &element);
  }

  // After all GPUs are known.
  void links_to(std::size_t gpu, const Element& element) {
    std::map<int, int> bundles;
    for (const Element& link : element.children) {
      if (link.name == "c2c") continue;  // to the processor of a Grace board
      if (link.name != "nvlink") return misplaced(link, "<nvlink> and <c2c>");
      const int links = number(link, "count", 1, 1024).value_or(0);
      if (links == 0) return refuse(link, "count is missing");
      const std::string target = text(link, "target");
      const auto bus_id = normal_bus_id(target);
      int peer = GpuLink::kSwitch;
      for (std::size_t g = 0; bus_id && g < host_.gpus.size(); ++g)
        if (host_.pci[static_cast<std::size_t>(host_.gpus[g].pci)].bus_id == *bus_id) peer = static_cast<int>(g);
      if (peer == GpuLink::kSwitch && text(link, "tclass").starts_with(kGpuClass))
        return refuse(link, fmt::format("target {}: the file has no GPU of this bus id", target.substr(0, 40)));
      if (peer == static_cast<int>(gpu)) return refuse(link, fmt::format("target {}: a link of a GPU to itself", target));
      bundles[peer] += links;
    }
    for (const auto& [peer, links] : bundles) host_.gpus[gpu].links.push_back({peer, links});
  }

  void nic(const Element& element, int pci) {
    for (const Element& child : element.children) child.name == "net" ? net(child, pci) : misplaced(child, "<net>");
  }

  void net(const Element& element, int pci) {
    const std::string name = text(element, "name");
    const std::optional<std::int64_t> Mbps = number<std::int64_t>(element, "speed", 0, 1'000'000'000);
    const int port = number(element, "port", 0, 255).value_or(0);
    const std::optional<std::int64_t> speed = Mbps == 0 ? std::nullopt : Mbps;
    if (name.empty()) return refuse(element, "name is missing");
    if (port == 0) {  // sockets: RDMA devices count their ports from 1 on
      host_.interfaces.push_back({.name = name, .Mbps = speed, .addresses = {}, .pci = pci, .numa = numa_});
      return;
    }
    const auto same = [&](const RdmaDevice& device) { return device.name == name && device.pci == pci; };
    const auto known = std::find_if(host_.rdma.begin(), host_.rdma.end(), same);
    RdmaDevice& device = known != host_.rdma.end()
                             ? *known
                             : host_.rdma.emplace_back(RdmaDevice{.name = name, .ports = {}, .pci = pci, .numa = numa_});
    device.guid = guid(element);
    device.ports.push_back({.number = port, .state = "", .link_layer = "", .Mbps = speed, .gids = {}});
  }

  // "0x2b1a650003a1420c" -> "2b1a:6500:03a1:420c", as the kernel writes it
  std::string guid(const Element& element) {
    std::string value = text(element, "guid");
    if (value.empty()) return "";
    std::uint64_t bits = 0;
    const char* digits = value.data() + (value.starts_with("0x") ? 2 : 0);
    const auto [end, error] = std::from_chars(digits, value.data() + value.size(), bits, 16);
    if (error != std::errc{} || end != value.data() + value.size()) {
      refuse(element, fmt::format("guid=\"{}\" is no hexadecimal number of 64 bits", value.substr(0, 40)));
      return "";
    }
    return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", bits >> 48, bits >> 32 & 0xffff, bits >> 16 & 0xffff, bits & 0xffff);
  }

  Host host_;
  std::optional<int> numa_;  // of the <cpu> that is being read
  std::string hash_;
  std::vector<int> processors_;
  std::map<std::string, int> lines_;  // of bus ids
  std::vector<std::pair<std::size_t, const Element*>> links_of_;
  Status failure_;
};

}  // namespace

Result<Host> parse_nccl_xml(std::string_view text) {
  const Result<Element> root = parse_xml(text);
  if (!root.is_ok()) return root.status();
  return Reader().read(*root);
}

}  // namespace shoal::topo
