// SPDX-License-Identifier: Apache-2.0
// shoal-topo of this machine beside what the machine's own programs say: lstopo, ip and ethtool where they are installed, and
// /sys.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/spawn.h"
#include "tools/well_formed.h"
#include "topo/processor_set.h"

using namespace shoal::testing;
using nlohmann::json;

namespace {

json host_here() {
  const Finished done = spawn({SHOAL_TOPO, "--json"});
  REQUIRE(done.code == 0);
  json host = json::parse(done.out, nullptr, false);
  REQUIRE(host.is_object());
  return host;
}

// What lstopo lists of a kind, a line each; of the whole machine, as we do.
std::vector<std::string> lstopo(const std::string& kind) {
  const Finished done = spawn({"lstopo-no-graphics", "--disallowed", "--only", kind});
  std::vector<std::string> found;
  for (const std::string& line : lines_of(done.out))
    if (line.find(" L#") != std::string::npos) found.push_back(line);
  return found;
}

// "PU L#1 (P#3)" -> 3
int system_number(const std::string& line) { return std::stoi(line.substr(line.find("P#") + 2)); }

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::set<std::string> sorted(const json& texts) {
  std::set<std::string> all;
  for (const json& each : texts) all.insert(each.get<std::string>());
  return all;
}

// Of one interface as ip tells it; link-local addresses have their interface with us.
std::set<std::string> addresses_in(const json& interface) {
  std::set<std::string> all;
  for (const json& each : interface["addr_info"])
    all.insert(each["local"].get<std::string>() +
               (each["scope"] == "link" && each["family"] == "inet6" ? "%" + interface["ifname"].get<std::string>() : ""));
  return all;
}

void compare(const json& ours, const json& theirs) {
  INFO(ours.dump() << "\n" << theirs.dump());
  CHECK(ours["mtu"] == theirs["mtu"]);
  CHECK(sorted(ours.value("addresses", json::array())) == addresses_in(theirs));
  const std::string name = ours["name"];
  const std::string speed = first_line("/sys/class/net/" + name + "/speed");
  CHECK(ours.value("Mbps", 0) == (speed.empty() ? 0 : std::max(0, std::stoi(speed))));
  if (const Finished ethtool = spawn({"ethtool", name}); ethtool.code == 0 && ours.contains("Mbps"))
    CHECK(ethtool.out.find("Speed: " + std::to_string(ours["Mbps"].get<int>()) + "Mb/s") != std::string::npos);
}

}  // namespace

TEST_CASE("topo: processors, cores, packages and nodes are those that lstopo lists") {
  if (spawn({"lstopo-no-graphics", "--version"}).code != 0) {
    WARN("SKIP: there is no lstopo-no-graphics here (Debian: hwloc-nox)");
    return;
  }
  const json host = host_here();
  std::vector<int> numbers;
  for (const std::string& line : lstopo("pu")) numbers.push_back(system_number(line));
  CHECK(host["processors"] == text_of(shoal::topo::ProcessorSet(numbers)));
  CHECK(host["cores"].size() == lstopo("core").size());
  CHECK(host["packages"].size() == lstopo("package").size());
  std::vector<int> nodes, theirs;
  for (const json& node : host.value("nodes", json::array())) nodes.push_back(node["number"]);
  for (const std::string& line : lstopo("numanode")) theirs.push_back(system_number(line));
  if (!nodes.empty()) CHECK(nodes == theirs);  // hwloc makes one up where the kernel tells of none
}

TEST_CASE("topo: interfaces, their addresses, states and speeds are those of ip, ethtool and /sys") {
  const std::vector<std::string> ip = {"ip", "-json", "addr"};
  Finished before = spawn(ip);
  if (before.code != 0) {
    WARN("SKIP: there is no ip here (Debian: iproute2)");
    return;
  }
  json host = host_here();
  Finished after = spawn(ip);
  for (int i = 0; i < 5 && before.out != after.out; ++i) {  // somebody changes interfaces, or lifetimes of addresses run
    before = spawn(ip);
    host = host_here();
    after = spawn(ip);
  }
  const json theirs = json::parse(after.out, nullptr, false);
  REQUIRE(theirs.is_array());
  for (const json& each : theirs) {
    const auto ours = std::find_if(host["interfaces"].begin(), host["interfaces"].end(),
                                   [&](const json& one) { return one["name"] == each["ifname"]; });
    INFO(each.dump());
    REQUIRE(ours != host["interfaces"].end());
    if (before.out == after.out) compare(*ours, each);
  }
}

TEST_CASE("topo: the limit of locked memory and RDMA devices are those of the kernel") {
  const json host = host_here();
  std::set<std::string> devices;
  const Finished listed = spawn({"ls", "/sys/class/infiniband"});
  for (const std::string& line : lines_of(listed.out))
    if (!line.empty()) devices.insert(line);
  std::set<std::string> ours;
  for (const json& each : host.value("rdma", json::array())) ours.insert(each["name"].get<std::string>());
  CHECK(ours == devices);
  const Finished locked = spawn({"sh", "-c", "ulimit -l"});  // KiB, or "unlimited"
  const json& limits = host["limits"];
  if (locked.out.starts_with("unlimited"))
    CHECK(limits.value("memlock_unlimited", false));
  else
    CHECK(limits["memlock_bytes"] == std::stoull(locked.out) * 1024);
}
