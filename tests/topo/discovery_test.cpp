// SPDX-License-Identifier: Apache-2.0
// Discovery in trees that the tests make, and of this machine against what the system says itself.
#include "topo/discovery.h"

#include <ifaddrs.h>
#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "topo/samples.h"

using namespace shoal::topo;
using namespace shoal::testing;

namespace {

// Two nodes of two cores with two hardware threads each, as /sys shows them.
void add_processors(const Tree& tree) {
  const std::string base = "/sys/devices/system/";
  tree.file(base + "cpu/online", "0-7");
  tree.file(base + "cpu/possible", "0-7");
  tree.file(base + "cpu/present", "0-7");
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string folder = base + "cpu/cpu" + std::to_string(cpu) + "/topology/";
    const int core = cpu % 4, package = core / 2;
    tree.file(folder + "physical_package_id", std::to_string(package));
    tree.file(folder + "core_id", std::to_string(core % 2));
    tree.file(folder + "thread_siblings", mask_of(ProcessorSet({core, core + 4})));
    tree.file(folder + "core_cpus", mask_of(ProcessorSet({core, core + 4})));
    tree.file(folder + "core_siblings", mask_of(ProcessorSet({2 * package, 2 * package + 1, 2 * package + 4, 2 * package + 5})));
    tree.file(folder + "package_cpus", mask_of(ProcessorSet({2 * package, 2 * package + 1, 2 * package + 4, 2 * package + 5})));
  }
  tree.file(base + "node/online", "0-1");
  for (int node = 0; node < 2; ++node) {
    const std::string folder = base + "node/node" + std::to_string(node) + "/";
    tree.file(folder + "cpumap", mask_of(ProcessorSet({2 * node, 2 * node + 1, 2 * node + 4, 2 * node + 5})));
    tree.file(folder + "meminfo", "Node " + std::to_string(node) + " MemTotal:       4194304 kB");
    tree.file(folder + "distance", node == 0 ? "10 21" : "21 10");
  }
  tree.file("/proc/meminfo", "MemTotal:        8388608 kB");
  tree.file("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Made Up");
}

// A device, and the bridge above it.
void add_pci(const Tree& tree, const std::string& bridge, const std::string& device, const std::string& class_code, int node) {
  const std::string root = "/sys/devices/pci0000:00/" + bridge, folder = root + "/" + device;
  tree.file(root + "/class", "0x060400");
  tree.file(folder + "/class", class_code);
  tree.file(folder + "/vendor", "0x15b3");
  tree.file(folder + "/device", "0x1021");
  tree.file(folder + "/numa_node", std::to_string(node));
  tree.file(folder + "/current_link_speed", "16.0 GT/s PCIe");
  tree.file(folder + "/max_link_speed", "32.0 GT/s PCIe");
  tree.file(folder + "/current_link_width", "8");
  tree.file(folder + "/max_link_width", "16");
  tree.link("/sys/bus/pci/devices/" + device, "/sys/devices/pci0000:00/" + bridge + "/" + device);
}

void add_interface(const Tree& tree, const std::string& name, const std::string& speed, const std::string& device) {
  const std::string folder = "/sys/class/net/" + name;
  tree.file(folder + "/ifindex", "2");
  tree.file(folder + "/type", name == "lo" ? "772" : "1");
  tree.file(folder + "/operstate", name == "lo" ? "unknown" : "up");
  tree.file(folder + "/speed", speed);
  tree.file(folder + "/mtu", "9000");
  if (!device.empty()) tree.link(folder + "/device", device);
}

void add_rdma(const Tree& tree, const std::string& device) {
  const std::string folder = "/sys/class/infiniband/mlx5_0", port = folder + "/ports/1";
  tree.file(folder + "/node_guid", "0c42:a103:0065:1a2b");
  tree.link(folder + "/device", device);
  tree.file(port + "/state", "4: ACTIVE");
  tree.file(port + "/rate", "200 Gb/sec (4X HDR)");
  tree.file(port + "/link_layer", "Ethernet");
  tree.file(port + "/gids/0", "fe80:0000:0000:0000:0e42:a1ff:fe65:1a2b");
  tree.file(port + "/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000");
  tree.file(port + "/gids/3", "0000:0000:0000:0000:0000:ffff:0a01:0001");
  tree.file(port + "/gid_attrs/types/3", "RoCE v2");
  tree.file(port + "/gid_attrs/ndevs/3", "eth7");
}

// Two GPUs with four links to each other, and two more to a switch.
class FakeNvml : public Nvml {
 public:
  int count() override { return 2; }
  std::optional<std::string> name(int device) override {
    return device == 0 ? std::optional<std::string>("Fake A100") : std::nullopt;
  }
  std::optional<std::string> bus_id(int device) override { return device == 0 ? "00000000:3B:00.0" : "00000000:5E:00.0"; }
  std::optional<std::uint64_t> memory_bytes(int) override { return std::uint64_t{40} << 30; }
  std::optional<int> compute_capability(int) override { return 80; }
  std::optional<std::string> link_peer(int device, int link) override {
    if (link < 4) return bus_id(1 - device);
    return link < 6 ? std::optional<std::string>("00000000:C4:00.0") : std::nullopt;
  }
  std::optional<bool> can_reach(int device, int) override { return device == 0; }
};

// The same two, the other way round, as CUDA_VISIBLE_DEVICES=1,0 has them; `seen` of them.
class FakeDriver : public CudaDriver {
 public:
  explicit FakeDriver(int seen = 2) : seen_(seen) {}
  int count() override { return seen_; }
  std::optional<std::string> name(int device) override { return device == 0 ? "Driver's first" : "Driver's second"; }
  std::optional<std::string> bus_id(int device) override { return device == 0 ? "0000:5E:00.0" : "0000:3B:00.0"; }
  std::optional<std::uint64_t> memory_bytes(int) override { return std::nullopt; }
  std::optional<int> compute_capability(int) override { return 90; }
  std::optional<bool> can_reach(int device, int) override { return device == 0; }
  std::optional<int> performance_rank(int device, int peer) override { return 10 * device + peer + 3; }

 private:
  int seen_;
};

}  // namespace

TEST_CASE("an empty root: everything is unknown, and valid") {
  const Tree tree;
  const Host host = discover({.root = tree.root()});
  CHECK(validate(host).is_ok());
  CHECK(host.name == "unknown");
  CHECK(host.id.empty());
  CHECK(host.processors.empty());
  CHECK(host.nodes.empty());
  CHECK(host.interfaces.empty());
  CHECK(host.rdma.empty());
  CHECK(host.gpus.empty());
  CHECK_FALSE(host.limits.cpu_quota.has_value());
  CHECK_FALSE(host.limits.memlock_bytes.has_value());
  CHECK_FALSE(host.memory_bytes.has_value());
}

TEST_CASE("a made tree: processors, nodes, devices and their places") {
  const Tree tree;
  add_processors(tree);
  add_pci(tree, "0000:00:01.0", "0000:3b:00.0", "0x020000", 1);
  add_pci(tree, "0000:00:02.0", "0000:5e:00.0", "0x020000", -1);
  add_interface(tree, "eth7", "200000", "/sys/devices/pci0000:00/0000:00:01.0/0000:3b:00.0");
  add_interface(tree, "eth8", "-1", "/sys/devices/pci0000:00/0000:00:02.0/0000:5e:00.0");
  add_interface(tree, "lo", "", "");
  tree.file("/sys/class/net/bonding_masters", "");
  add_rdma(tree, "/sys/devices/pci0000:00/0000:00:01.0/0000:3b:00.0");
  const Host host = discover({.root = tree.root()});
  REQUIRE(validate(host).is_ok());

  CHECK(text_of(host.processors) == "0-7");
  CHECK(host.ours == host.processors);
  REQUIRE(host.packages.size() == 2);
  CHECK(text_of(host.packages[1].processors) == "2-3,6-7");
  REQUIRE(host.cores.size() == 4);
  CHECK(text_of(host.cores[1].processors) == "1,5");
  REQUIRE(host.nodes.size() == 2);
  CHECK(host.nodes[1].memory_bytes == std::uint64_t{4} << 30);
  CHECK(host.nodes[1].distances == std::vector<int>{21, 10});
  CHECK(host.memory_bytes == std::uint64_t{8} << 30);

  REQUIRE(host.interfaces.size() == 3);
  const Interface &fast = host.interfaces[0], &odd = host.interfaces[1], &loop = host.interfaces[2];
  CHECK(fast.name == "eth7");
  CHECK(fast.Mbps == 200000);
  CHECK(fast.up == true);
  CHECK(fast.numa == 1);
  REQUIRE(fast.pci >= 0);
  const PciDevice& card = host.pci[static_cast<std::size_t>(fast.pci)];
  CHECK(card.bus_id == "0000:3b:00.0");
  CHECK(host.pci[static_cast<std::size_t>(card.parent)].bus_id == "0000:00:01.0");
  CHECK(card.speed_GTs == 16.0);
  CHECK(card.width == 8);
  CHECK(card.most_width == 16);
  CHECK_FALSE(odd.Mbps.has_value());  // -1 is unknown
  CHECK_FALSE(odd.numa.has_value());
  CHECK(loop.loopback);
  CHECK(loop.pci == -1);
  CHECK_FALSE(loop.up.has_value());

  REQUIRE(host.rdma.size() == 1);
  CHECK(host.rdma[0].pci == fast.pci);
  REQUIRE(host.rdma[0].ports.size() == 1);
  CHECK(host.rdma[0].ports[0].state == "ACTIVE");
  CHECK(host.rdma[0].ports[0].Mbps == 200000);
  CHECK(host.rdma[0].ports[0].gids == std::vector<Gid>{{0, "fe80:0000:0000:0000:0e42:a1ff:fe65:1a2b", "", ""},
                                                       {3, "0000:0000:0000:0000:0000:ffff:0a01:0001", "RoCE v2", "eth7"}});
}

TEST_CASE("speeds alone: of interfaces that have one, and of ports, as the whole discovery says") {
  const Tree tree;
  add_interface(tree, "eth7", "200000", "");
  add_interface(tree, "eth8", "-1", "");
  add_interface(tree, "lo", "", "");
  add_rdma(tree, "/sys/devices/nowhere");
  const Host speeds = discover_briefly({.root = tree.root()});
  REQUIRE(speeds.interfaces.size() == 1);
  CHECK(speeds.interfaces[0].name == "eth7");
  CHECK(speeds.interfaces[0].up == true);
  CHECK(speeds.interfaces[0].Mbps == 200000);
  REQUIRE(speeds.rdma.size() == 1);
  REQUIRE(speeds.rdma[0].ports.size() == 1);
  CHECK(speeds.rdma[0].ports[0].state == "ACTIVE");
  CHECK(speeds.rdma[0].ports[0].Mbps == 200000);
  CHECK(discover_briefly({.root = "/nosuch"}).interfaces.empty());
}

TEST_CASE("briefly: the processors of NUMA nodes, where there are several") {
  const Tree tree;
  const std::string folder = "/sys/devices/system/node";
  tree.file(folder + "/node0/cpulist", "0-3,8-11");
  tree.file(folder + "/possible", "0-1");
  CHECK(discover_briefly({.root = tree.root()}).nodes.empty());
  tree.file(folder + "/node10/cpulist", "4-7");
  tree.file(folder + "/node2/cpulist", "x");
  tree.file(folder + "/node2x/cpulist", "12");
  const std::vector<NumaNode> nodes = discover_briefly({.root = tree.root()}).nodes;
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].number == 0);
  CHECK(text_of(nodes[0].processors) == "0-3,8-11");
  CHECK(nodes[1].number == 10);
  CHECK(text_of(nodes[1].processors) == "4-7");
}

TEST_CASE("FC-40: parts of /sys that are missing or contradict each other are unknown") {
  const Tree no_buses;
  add_processors(no_buses);
  add_pci(no_buses, "0000:00:01.0", "0000:3b:00.0", "0x020000", 9);  // a node that is not there
  add_interface(no_buses, "eth7", "rubbish", "/sys/devices/pci0000:00/0000:00:01.0/0000:3b:00.0");
  add_interface(no_buses, "eth8", "1000", "/sys/devices/nowhere");  // leads nowhere
  std::filesystem::remove_all(no_buses.root() + "/sys/bus");
  Host host = discover({.root = no_buses.root()});
  CHECK(validate(host).is_ok());
  REQUIRE(host.interfaces.size() == 2);
  CHECK_FALSE(host.interfaces[0].numa.has_value());
  CHECK_FALSE(host.interfaces[0].Mbps.has_value());
  CHECK(host.interfaces[1].pci == -1);
  CHECK(host.interfaces[1].Mbps == 1000);

  std::filesystem::remove_all(no_buses.root() + "/sys/devices/system/node");
  host = discover({.root = no_buses.root()});
  CHECK(validate(host).is_ok());
  CHECK(host.nodes.empty());
  CHECK(text_of(host.processors) == "0-7");
  CHECK(host.memory_bytes == std::uint64_t{8} << 30);
}

TEST_CASE("GPUs: from the library, placed in the tree; links to each other and to switches") {
  const Tree tree;
  add_processors(tree);
  add_pci(tree, "0000:00:01.0", "0000:3b:00.0", "0x030200", 1);
  FakeNvml nvml;
  const Host host = discover({.root = tree.root(), .nvml = &nvml});
  REQUIRE(validate(host).is_ok());
  REQUIRE(host.gpus.size() == 2);
  CHECK(host.gpus[0].name == "Fake A100");
  CHECK(host.gpus[0].numa == 1);
  CHECK(host.pci[static_cast<std::size_t>(host.gpus[0].pci)].width == 8);
  CHECK(host.gpus[0].links == std::vector<GpuLink>{{GpuLink::kSwitch, 2}, {1, 4}});
  CHECK(host.gpus[0].reaches == std::vector<int>{1});
  CHECK(host.p2p_known);
  // The second one is not in /sys: it is there all the same, its place unknown.
  CHECK(host.gpus[1].name.empty());
  CHECK_FALSE(host.gpus[1].numa.has_value());
  CHECK(host.pci[static_cast<std::size_t>(host.gpus[1].pci)].bus_id == "0000:5e:00.0");
  CHECK(host.gpus[1].reaches.empty());
}

TEST_CASE("GPUs: who maps whose memory is the driver's to say, matched by bus id, where it sees both") {
  const Tree tree;
  add_processors(tree);
  FakeNvml nvml;
  FakeDriver both, one(1);
  Host host = discover({.root = tree.root(), .nvml = &nvml, .driver = &both});
  REQUIRE(validate(host).is_ok());
  REQUIRE(host.gpus.size() == 2);
  CHECK(host.gpus[0].name == "Fake A100");
  CHECK(host.gpus[0].links == std::vector<GpuLink>{{GpuLink::kSwitch, 2}, {1, 4}});
  CHECK(host.gpus[0].reaches.empty());  // the driver's second
  CHECK(host.gpus[1].reaches == std::vector<int>{0});
  CHECK(host.gpus[1].performance_ranks == std::vector<int>{4});
  host = discover({.root = tree.root(), .nvml = &nvml, .driver = &one});
  CHECK(host.gpus[0].reaches == std::vector<int>{1});  // as NVML has it
  CHECK(host.gpus[0].performance_ranks.empty());
}

TEST_CASE("GPUs: the driver alone names them, in its order; one that sees none is as if there were none") {
  const Tree tree;
  add_processors(tree);
  add_pci(tree, "0000:00:01.0", "0000:3b:00.0", "0x030200", 1);
  tree.file("/sys/devices/pci0000:00/0000:00:01.0/0000:3b:00.0/vendor", "0x10de");
  FakeDriver driver, blind(0);
  Host host = discover({.root = tree.root(), .driver = &driver});
  REQUIRE(validate(host).is_ok());
  REQUIRE(host.gpus.size() == 2);
  CHECK(host.gpus[0].name == "Driver's first");
  CHECK(host.gpus[0].compute_capability == 90);
  CHECK_FALSE(host.gpus[0].memory_bytes.has_value());
  CHECK(host.gpus[1].numa == 1);
  CHECK(host.p2p_known);
  CHECK(host.gpus[0].reaches == std::vector<int>{1});
  CHECK(host.gpus[0].performance_ranks == std::vector<int>{4});
  CHECK(host.gpus[1].reaches.empty());
  host = discover({.root = tree.root(), .driver = &blind});
  REQUIRE(host.gpus.size() == 1);
  CHECK(host.gpus[0].name.empty());
  CHECK_FALSE(host.p2p_known);
}

TEST_CASE("GPUs: without the library, NVIDIA's among the displays") {
  const Tree tree;
  add_processors(tree);
  add_pci(tree, "0000:00:01.0", "0000:3b:00.0", "0x030200", 0);
  add_pci(tree, "0000:00:02.0", "0000:5e:00.0", "0x030000", 0);  // the board's own
  tree.file("/sys/devices/pci0000:00/0000:00:01.0/0000:3b:00.0/vendor", "0x10de");
  const Host host = discover({.root = tree.root()});
  REQUIRE(host.gpus.size() == 1);
  CHECK(host.gpus[0].numa == 0);
  CHECK(host.gpus[0].links.empty());
}

TEST_CASE("FC-41: cpuset and quota of control groups, version 2, the tightest on the way up") {
  const Tree tree;
  add_processors(tree);
  tree.file("/proc/self/cgroup", "0::/jobs/one");
  tree.file("/proc/self/mountinfo", "31 24 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate");
  tree.file("/sys/fs/cgroup/jobs/one/cpu.max", "max 100000");
  tree.file("/sys/fs/cgroup/jobs/cpu.max", "200000 100000");
  tree.file("/sys/fs/cgroup/jobs/one/cpuset.cpus.effective", "1,3");
  const Host host = discover({.root = tree.root()});
  CHECK(host.limits.cpu_quota == 2.0);
  CHECK(text_of(host.ours) == "1,3");
  CHECK(text_of(host.processors) == "0-7");
}

TEST_CASE("FC-41: the same in version 1, seen from inside a container") {
  const Tree tree;
  add_processors(tree);
  tree.file("/proc/self/cgroup", "9:cpuset:/docker/abc\n4:cpu,cpuacct:/docker/abc/inner\n0::/");
  tree.file("/proc/self/mountinfo",
            "40 30 0:35 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
            "41 30 0:36 /docker/abc /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset");
  tree.file("/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_quota_us", "-1");
  tree.file("/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_period_us", "100000");
  tree.file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000");
  tree.file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  tree.file("/sys/fs/cgroup/cpuset/cpuset.cpus", "0-3");  // one hardware thread of each core
  const Host host = discover({.root = tree.root()});
  CHECK(host.limits.cpu_quota == 1.5);
  CHECK(text_of(host.ours) == "0-3");
  CHECK(host.cores.size() == 4);
}

TEST_CASE("this machine: as the system says itself") {
  const Host host = discover();
  REQUIRE(validate(host).is_ok());
  CHECK(host.ours.count() >= 1);
  CHECK(host.processors.covers(host.ours));
  std::set<std::string> seen;
  for (const Interface& each : host.interfaces) seen.insert(each.name);
  ifaddrs* list = nullptr;
  REQUIRE(getifaddrs(&list) == 0);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) CHECK(seen.count(entry->ifa_name) == 1);
  freeifaddrs(list);
  CHECK(host.memory_bytes.value_or(0) > 0);
  CHECK(host.limits.memlock_bytes.has_value());
}

TEST_CASE("FC-41: a thread's affinity is its share of the machine") {
  Host host;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    const int last = discover().ours.numbers().back();
    CPU_SET(static_cast<std::size_t>(last), &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) host = discover();
    CHECK(text_of(host.ours) == std::to_string(last));
  }).join();
  CHECK(host.processors.covers(host.ours));
}
