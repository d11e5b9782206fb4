// SPDX-License-Identifier: Apache-2.0
#include "topo/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "topo/hwloc_library.h"

namespace shoal::topo {
namespace {

using Topology = HwlocLibrary::Topology;

const std::string kNodes = "/sys/devices/system/node";

std::vector<int> node_numbers(const SystemFiles& files) {
  std::vector<int> numbers;
  for (const std::string& name : files.names_in(kNodes)) {
    int number = -1;
    const char* const end = name.data() + name.size();
    if (!name.starts_with("node") || name.size() == 4) continue;
    if (const auto read = std::from_chars(name.data() + 4, end, number); read.ec == std::errc{} && read.ptr == end && number >= 0)
      numbers.push_back(number);
  }
  return numbers;
}

// hwloc 2.9 ends the process by an assertion where the folder of nodes is there and has none.
bool ends_hwloc(const SystemFiles& files) { return files.target(kNodes) && node_numbers(files).empty(); }

Topology load(const HwlocLibrary& hwloc, const SystemFiles& files) {
  static std::mutex environment;
  std::vector<const char*> without;
  if (!files.is_this_machine()) without.push_back("x86");  // it asks this machine's processors
  if (ends_hwloc(files)) without.push_back("linux");
  if (files.is_this_machine()) return hwloc.load_whole(without);
  const std::lock_guard lock(environment);
  ::setenv("HWLOC_FSROOT", files.root().c_str(), 1);
  Topology topology = hwloc.load_whole(without);
  ::unsetenv("HWLOC_FSROOT");
  return topology;
}

// Of one topology, what objects of a type say.
class Machine {
 public:
  Machine(const HwlocLibrary& hwloc, const Topology& topology) : hwloc_(hwloc), topology_(topology) {}

  hwloc_obj_t root() const { return hwloc_.first(topology_, HWLOC_OBJ_MACHINE); }
  ProcessorSet allowed() const { return set_of(hwloc_.allowed(topology_)); }
  ProcessorSet set_of(hwloc_const_cpuset_t bits) const { return ProcessorSet(hwloc_.numbers_in(bits, ProcessorSet::kHighest)); }
  std::vector<std::uint64_t> node_distances() const { return hwloc_.node_distances(topology_); }
  template <typename Each>
  void for_each(hwloc_obj_type_t type, Each each) const {
    for (int i = 0; i < hwloc_.count(topology_, type); ++i) each(hwloc_.at(topology_, type, i));
  }

 private:
  const HwlocLibrary& hwloc_;
  const Topology& topology_;
};

std::string info(hwloc_obj_t object, const char* name) {
  const char* text = object == nullptr ? nullptr : hwloc_obj_get_info_by_name(object, name);
  return text == nullptr ? "" : text;
}

std::optional<int> number_in(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// What the scheduler lets this thread use; with as large a mask as the kernel wants.
ProcessorSet affinity() {
  for (int most = 1024; most <= 2 * (ProcessorSet::kHighest + 1); most *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(CPU_ALLOC(static_cast<std::size_t>(most)),
                                                                [](cpu_set_t* each) { CPU_FREE(each); });
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    if (mask == nullptr || sched_getaffinity(0, bytes, mask.get()) != 0) continue;
    std::vector<int> numbers;
    for (int n = 0; n < most && n <= ProcessorSet::kHighest; ++n)
      if (CPU_ISSET_S(static_cast<std::size_t>(n), bytes, mask.get())) numbers.push_back(n);
    return ProcessorSet(std::move(numbers));
  }
  return {};
}

// Without hwloc's help.
void find_flat(Host& host) {
  host.ours = affinity();
  host.processors = host.ours;
}

void find_nodes(const Machine& machine, Host& host) {
  machine.for_each(HWLOC_OBJ_NUMANODE, [&](hwloc_obj_t node) {
    host.nodes.push_back({.number = static_cast<int>(node->os_index), .processors = machine.set_of(node->cpuset)});
    const std::uint64_t bytes = node->attr == nullptr ? 0 : node->attr->numanode.local_memory;
    if (bytes > 0) host.nodes.back().memory_bytes = bytes;
  });
  const std::size_t nodes = host.nodes.size();
  const std::vector<std::uint64_t> distances = machine.node_distances();
  if (distances.size() != nodes * nodes) return;
  for (std::size_t a = 0; a < nodes; ++a)
    for (std::size_t b = 0; b < nodes; ++b) host.nodes[a].distances.push_back(static_cast<int>(distances[a * nodes + b]));
}

// A node that hwloc made up, because the kernel told of none.
void drop_node_without_evidence(const SystemFiles& files, Host& host) {
  if (host.nodes.size() == 1 && files.names_in(kNodes).empty()) host.nodes.clear();
}

// "MemTotal:       8043312 kB": where hwloc, which asks /sys, knows nothing.
void find_memory(const SystemFiles& files, Host& host) {
  for (const std::string& line : files.lines("/proc/meminfo")) {
    std::uint64_t kilobytes = 0;
    const std::size_t digits = line.find_first_of("0123456789");
    if (!line.starts_with("MemTotal:") || digits == std::string::npos) continue;
    if (std::from_chars(line.data() + digits, line.data() + line.size(), kilobytes).ec == std::errc{} && kilobytes > 0)
      host.memory_bytes = kilobytes * 1024;
    return;
  }
}

}  // namespace

void find_several_nodes(const SystemFiles& files, Host& host) {
  const std::vector<int> numbers = node_numbers(files);
  if (numbers.size() < 2) return;
  for (const int number : numbers) {
    Result<ProcessorSet> set = parse_processors(files.line(fmt::format("{}/node{}/cpulist", kNodes, number)).value_or(""));
    if (set.is_ok()) host.nodes.push_back({.number = number, .processors = set.take()});
  }
  if (files.is_this_machine()) host.ours = affinity();
}

void find_processors(const SystemFiles& files, Host& host) {
  find_memory(files, host);
  if (!files.is_this_machine() && files.names_in("/sys/devices/system/cpu").empty()) return;  // hwloc would take this machine's
  const HwlocLibrary* const hwloc = HwlocLibrary::open();
  if (hwloc == nullptr) return find_flat(host);
  const Topology topology = load(*hwloc, files);
  if (topology == nullptr) return find_flat(host);
  const Machine machine(*hwloc, topology);
  const hwloc_obj_t root = machine.root();
  host.architecture = info(root, "Architecture");
  if (root->total_memory > 0) host.memory_bytes = root->total_memory;
  host.processors = machine.set_of(root->complete_cpuset);
  host.ours = machine.allowed().within(host.processors);
  if (files.is_this_machine()) host.ours = affinity().within(host.processors);

  machine.for_each(HWLOC_OBJ_PACKAGE, [&](hwloc_obj_t package) {
    const auto about = [&](const char* what) {
      const std::string of_package = info(package, what);
      return of_package.empty() ? info(root, what) : of_package;
    };
    host.packages.push_back({.number = static_cast<int>(package->os_index),
                             .model = about("CPUModel"),
                             .vendor = about("CPUVendor"),
                             .family = number_in(about("CPUFamilyNumber")),
                             .model_number = number_in(about("CPUModelNumber")),
                             .processors = machine.set_of(package->cpuset)});
  });
  machine.for_each(HWLOC_OBJ_CORE, [&](hwloc_obj_t core) { host.cores.push_back({machine.set_of(core->cpuset)}); });
  for (const auto type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE})
    machine.for_each(type, [&](hwloc_obj_t cache) {
      host.caches.push_back({.level = static_cast<int>(cache->attr->cache.depth),
                             .bytes = cache->attr->cache.size,
                             .processors = machine.set_of(cache->cpuset)});
    });
  find_nodes(machine, host);
  drop_node_without_evidence(files, host);
}

}  // namespace shoal::topo
