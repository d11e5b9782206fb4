// SPDX-License-Identifier: Apache-2.0
#include "topo/network.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

namespace shoal::topo {
namespace {

constexpr std::size_t kMostDevices = 4096, kMostGids = 256;

Interface* find(std::vector<Interface>& interfaces, const std::string& name) {
  const auto found = std::find_if(interfaces.begin(), interfaces.end(), [&](const Interface& i) { return i.name == name; });
  return found == interfaces.end() ? nullptr : &*found;
}

// Addresses, and all that can be said of an interface without /sys.
void add_addresses(std::vector<Interface>& interfaces) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    Interface* interface = find(interfaces, entry->ifa_name);
    if (interface == nullptr) interface = &interfaces.emplace_back(Interface{.name = entry->ifa_name});
    constexpr unsigned kRunning = IFF_UP | IFF_RUNNING;
    interface->up = (entry->ifa_flags & kRunning) == kRunning;
    interface->loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char text[NI_MAXHOST];
    const socklen_t length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (getnameinfo(entry->ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      interface->addresses.emplace_back(text);
  }
}

// "200 Gb/sec (2X HDR)", "2.5 Gb/sec (1X SDR)"
std::optional<std::int64_t> rate(const std::optional<std::string>& text) {
  double gigabits = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), gigabits).ec != std::errc{}) return std::nullopt;
  return gigabits > 0 && gigabits < 1e9 ? std::optional(static_cast<std::int64_t>(std::llround(gigabits * 1000))) : std::nullopt;
}

std::vector<Gid> gids_of(const SystemFiles& files, const std::string& port) {
  std::vector<Gid> gids;
  for (const std::string& name : files.names_in(port + "/gids")) {
    const std::string gid = files.line(fmt::format("{}/gids/{}", port, name)).value_or("");
    int index = 0;
    if (gids.size() == kMostGids) break;
    if (gid.find_first_not_of("0:") == std::string::npos) continue;  // not set
    if (std::from_chars(name.data(), name.data() + name.size(), index).ec != std::errc{}) continue;
    gids.push_back({.index = index,
                    .gid = gid,
                    .type = files.line(fmt::format("{}/gid_attrs/types/{}", port, name)).value_or(""),
                    .interface = files.line(fmt::format("{}/gid_attrs/ndevs/{}", port, name)).value_or("")});
  }
  return gids;
}

// "4: ACTIVE" -> "ACTIVE"
std::string state_of(const std::string& text) {
  const std::size_t blank = text.find(' ');
  return blank == std::string::npos ? text : text.substr(blank + 1);
}

std::optional<bool> is_up(const SystemFiles& files, const std::string& interface) {
  const std::optional<std::string> state = files.line(interface + "/operstate");
  return state && *state != "unknown" ? std::optional(*state == "up") : std::nullopt;
}

std::optional<std::int64_t> speed_of(const SystemFiles& files, const std::string& interface) {
  const std::optional<std::int64_t> Mbps = files.number(interface + "/speed");
  return Mbps && *Mbps > 0 ? Mbps : std::nullopt;
}

// Number, state and speed of the ports of a device.
std::vector<RdmaPort> ports_of(const SystemFiles& files, const std::string& device) {
  std::vector<RdmaPort> ports;
  for (const std::string& number : files.names_in(device + "/ports")) {
    const std::string port = fmt::format("{}/ports/{}", device, number);
    RdmaPort found;
    if (std::from_chars(number.data(), number.data() + number.size(), found.number).ec != std::errc{}) continue;
    found.state = state_of(files.line(port + "/state").value_or(""));
    found.Mbps = rate(files.line(port + "/rate"));
    ports.push_back(std::move(found));
  }
  return ports;
}

}  // namespace

std::vector<Interface> find_interfaces(const SystemFiles& files, PciTree& pci) {
  std::vector<Interface> interfaces;
  for (const std::string& name : files.names_in("/sys/class/net")) {
    const std::string folder = "/sys/class/net/" + name;
    if (interfaces.size() == kMostDevices) break;
    if (!files.target(folder + "/ifindex")) continue;  // such as bonding_masters, which is a file
    const PciTree::Place place = pci.place_of(folder + "/device");
    Interface found{
        .name = name, .up = is_up(files, folder), .Mbps = speed_of(files, folder), .pci = place.pci, .numa = place.numa};
    found.loopback = files.number(folder + "/type") == 772;  // ARPHRD_LOOPBACK
    found.mtu = files.number(folder + "/mtu");
    interfaces.push_back(std::move(found));
  }
  if (files.is_this_machine()) add_addresses(interfaces);
  return interfaces;
}

std::vector<RdmaDevice> find_rdma(const SystemFiles& files, PciTree& pci) {
  std::vector<RdmaDevice> devices;
  for (const std::string& name : files.names_in("/sys/class/infiniband")) {
    const std::string folder = "/sys/class/infiniband/" + name;
    if (devices.size() == kMostDevices) break;
    const PciTree::Place place = pci.place_of(folder + "/device");
    RdmaDevice device{.name = name,
                      .guid = files.line(folder + "/node_guid").value_or(""),
                      .ports = ports_of(files, folder),
                      .pci = place.pci,
                      .numa = place.numa};
    for (RdmaPort& each : device.ports) {
      const std::string port = fmt::format("{}/ports/{}", folder, each.number);
      each.link_layer = files.line(port + "/link_layer").value_or("");
      each.gids = gids_of(files, port);
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<Interface> find_interface_speeds(const SystemFiles& files) {
  std::vector<Interface> interfaces;
  for (const std::string& name : files.names_in("/sys/class/net")) {
    const std::string folder = "/sys/class/net/" + name;
    if (const auto Mbps = speed_of(files, folder); Mbps && interfaces.size() < kMostDevices)
      interfaces.push_back({.name = name, .up = is_up(files, folder), .Mbps = Mbps, .addresses = {}});
  }
  return interfaces;
}

std::vector<RdmaDevice> find_rdma_speeds(const SystemFiles& files) {
  std::vector<RdmaDevice> devices;
  for (const std::string& name : files.names_in("/sys/class/infiniband"))
    if (devices.size() < kMostDevices)
      devices.push_back({.name = name, .ports = ports_of(files, "/sys/class/infiniband/" + name)});
  return devices;
}

}  // namespace shoal::topo
