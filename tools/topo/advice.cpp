// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/topo/words.h"

namespace shoal::topo_tool {

using namespace topo;

namespace {

// Containers get 64 MiB unless they ask for more; data loaders of training frameworks alone want more than that.
constexpr std::uint64_t kLeastShm = 512 << 20;
// RDMA registers what it sends from: buffers of some links, at least.
constexpr std::uint64_t kLeastMemlock = 1 << 30;
constexpr std::int64_t kFastMbps = 10'000;

class Adviser {
 public:
  Adviser(const Host& host, int ranks) : host_(host), ranks_(ranks) {}

  std::vector<Advice> advise() {
    processors();
    memory();
    for (const PciDevice& each : host_.pci) narrow(each);
    for (const Gpu& each : host_.gpus) far(each);
    interfaces();
    ports();
    return std::move(advice_);
  }

 private:
  void say(std::string what, std::string remedy) { advice_.push_back({std::move(what), std::move(remedy)}); }

  void processors() {
    const int ours = host_.ours.count();
    if (host_.limits.cpu_quota && ranks_ > 0 && *host_.limits.cpu_quota < ranks_)
      say(fmt::format("CPU quota {:g}, but {}: they are stopped in the middle of collectives, and all others wait",
                      *host_.limits.cpu_quota, plural(ranks_, "rank")),
          fmt::format("raise the quota to at least {} (docker: --cpus, Kubernetes: limits.cpu), or set none and use a cpuset",
                      ranks_));
    if (ranks_ > 0 && ours > 0 && ours < ranks_)
      say(fmt::format("{}, but only {} ({})", plural(ranks_, "rank"), plural(ours, "processor"), text_of(host_.ours)),
          "run fewer ranks here, or widen the affinity or the cpuset");
    if (host_.limits.cpu_quota && ours > 0 && *host_.limits.cpu_quota < ours)
      say(fmt::format("CPU quota {:g} on {}: threads that spin use it up early in each period", *host_.limits.cpu_quota,
                      plural(ours, "processor")),
          "use a cpuset instead of a quota, or set SHOAL_SPIN_US=0");
    for (const NumaNode& node : host_.nodes)
      if (!node.processors.empty() && node.memory_bytes == std::uint64_t{0})
        say(fmt::format("NUMA node {} has processors and no memory: all that they touch is far away", node.number),
            "put memory modules into that socket's slots, or keep ranks away from processors " + text_of(node.processors));
  }

  void memory() {
    if (host_.limits.shm_bytes && *host_.limits.shm_bytes < kLeastShm)
      say(fmt::format("/dev/shm holds {}: Shoal needs nothing there, but NCCL and data loaders do",
                      bytes_text(*host_.limits.shm_bytes)),
          "enlarge it (docker: --shm-size=1g or --ipc=host; Kubernetes: an emptyDir with medium: Memory)");
    if (!host_.rdma.empty() && host_.limits.memlock_bytes && *host_.limits.memlock_bytes < kLeastMemlock)
      say(fmt::format("locked memory is limited to {}, but RDMA registers its buffers", bytes_text(*host_.limits.memlock_bytes)),
          "raise it (ulimit -l unlimited; docker: --ulimit memlock=-1; systemd: LimitMEMLOCK=infinity)");
  }

  // GPUs slow their link down while they idle, but keep its width.
  void narrow(const PciDevice& device) {
    if (!device.width || !device.most_width || *device.width >= *device.most_width) return;
    say(fmt::format("{}: {} of {} PCI lanes", device.bus_id, *device.width, *device.most_width),
        "seat the card again, or use a slot with all lanes; some boards share them between slots");
  }

  // A GPU has an RDMA device of its node, if the host has any.
  void far(const Gpu& gpu) {
    if (!gpu.numa || host_.rdma.empty()) return;
    for (const RdmaDevice& each : host_.rdma)
      if (!each.numa || *each.numa == *gpu.numa) return;
    say(fmt::format("GPU {} is on NUMA node {}, but every RDMA device is on another ({} on {})", gpu.number, *gpu.numa,
                    host_.rdma.front().name, *host_.rdma.front().numa),
        "move a card into a slot of that node; until then, ranks on this GPU share the link between the processors");
  }

  void interfaces() {
    std::int64_t fastest = 0;
    const auto counts = [](const Interface& i) { return !i.loopback && i.up.value_or(false) && i.pci >= 0 && i.Mbps; };
    std::string name;
    for (const Interface& each : host_.interfaces) {
      if (!counts(each) || *each.Mbps <= fastest) continue;
      fastest = *each.Mbps;
      name = each.name;
    }
    for (const Interface& each : host_.interfaces) {
      if (counts(each) && *each.Mbps < fastest)
        say(fmt::format("{} runs at {}, {} at {}", each.name, rate_text(*each.Mbps), name, rate_text(fastest)),
            fmt::format("name the fast ones (NCCL_SOCKET_IFNAME={}), or look at cable, switch port and negotiation (ethtool {})",
                        name, each.name));
      if (counts(each) && *each.Mbps >= 2 * kFastMbps && each.mtu && *each.mtu <= 1500)
        say(fmt::format("{}: MTU {} at {}", each.name, *each.mtu, rate_text(*each.Mbps)),
            fmt::format("use jumbo frames if the whole network does (ip link set {} mtu 9000)", each.name));
    }
  }

  void ports() {
    std::int64_t fastest = 0;
    for (const RdmaDevice& device : host_.rdma)
      for (const RdmaPort& port : device.ports) fastest = std::max(fastest, port.Mbps.value_or(0));
    for (const RdmaDevice& device : host_.rdma)
      for (const RdmaPort& port : device.ports) {
        if (!port.state.empty() && port.state != "ACTIVE")
          say(fmt::format("RDMA {} port {} is {}", device.name, port.number, port.state),
              "look at the cable, the switch port and, on InfiniBand, at the subnet manager (ibstat)");
        else if (port.Mbps && *port.Mbps < fastest)
          say(fmt::format("RDMA {} port {} runs at {}, others at {}", device.name, port.number, rate_text(*port.Mbps),
                          rate_text(fastest)),
              "rings run at the slowest port's speed: look at cable and switch port, or leave it out (NCCL_IB_HCA)");
      }
  }

  const Host& host_;
  int ranks_;
  std::vector<Advice> advice_;
};

}  // namespace

std::vector<Advice> advise(const Host& host, int ranks) { return Adviser(host, ranks).advise(); }

}  // namespace shoal::topo_tool
