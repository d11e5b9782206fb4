// SPDX-License-Identifier: Apache-2.0
#include "link/interfaces.h"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <span>
#include <tuple>

#include "core/name_filter.h"

namespace shoal::link {
namespace {

bool is_link_local(const sockaddr& address) {
  if (address.sa_family == AF_INET6) return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 16 == 0xA9FE;  // 169.254.0.0/16
}

// The bytes of an IP address, network order; nothing for what is none.
std::vector<unsigned char> bytes_of(const std::string& ip) {
  std::vector<unsigned char> bytes(16);
  if (inet_pton(AF_INET, ip.c_str(), bytes.data()) == 1)
    bytes.resize(4);
  else if (inet_pton(AF_INET6, without_scope(ip).c_str(), bytes.data()) != 1)
    bytes.clear();
  return bytes;
}

std::span<const unsigned char> bytes_of(const sockaddr& address) {
  if (address.sa_family == AF_INET6) return reinterpret_cast<const sockaddr_in6&>(address).sin6_addr.s6_addr;
  return {reinterpret_cast<const unsigned char*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr), 4};
}

bool same_subnet(const sockaddr& own, const sockaddr* mask, const std::vector<unsigned char>& other) {
  const std::span<const unsigned char> bytes = bytes_of(own);
  if (mask == nullptr || mask->sa_family != own.sa_family || bytes.size() != other.size()) return false;
  const std::span<const unsigned char> bits = bytes_of(*mask);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (((bytes[i] ^ other[i]) & bits[i]) != 0) return false;
  return true;
}

// Nothing for addresses of other families.
std::optional<InterfaceAddress> read_interface(const ifaddrs& entry, const std::vector<unsigned char>& near) {
  constexpr unsigned kRunning = IFF_UP | IFF_RUNNING;
  if (entry.ifa_addr == nullptr) return std::nullopt;
  const int family = entry.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) return std::nullopt;
  char text[NI_MAXHOST];
  const socklen_t length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (getnameinfo(entry.ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return std::nullopt;
  return InterfaceAddress{.interface = entry.ifa_name,
                          .address = text,
                          .ipv6 = family == AF_INET6,
                          .loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0,
                          .link_local = is_link_local(*entry.ifa_addr),
                          .running = (entry.ifa_flags & kRunning) == kRunning,
                          .near = same_subnet(*entry.ifa_addr, entry.ifa_netmask, near)};
}

// The order in which interfaces are offered. From kLastResort on only where there is nothing else.
constexpr int kLastResort = 5;
int preference(const InterfaceAddress& a) {
  if (a.loopback) return a.ipv6 ? kLastResort + 2 : kLastResort;
  if (a.interface.starts_with("virbr")) return kLastResort + 1;
  if (a.link_local) return 4;
  if (a.interface.starts_with("ib")) return 0;
  if (a.near) return 1;
  return a.interface.starts_with("docker") ? 3 : 2;
}

bool comes_before(const InterfaceAddress& a, const InterfaceAddress& b) {
  return std::tuple(preference(a), a.ipv6) < std::tuple(preference(b), b.ipv6);
}

// Why `candidate`, which comes after `chosen`, is not offered, too; empty if it is.
std::string reason_against(const InterfaceAddress& candidate, const std::vector<InterfaceAddress>& chosen,
                           const NameFilter& filter, const std::string& family) {
  if (!candidate.running) return "it is down";
  if (!family.empty() && (family == "AF_INET6") != candidate.ipv6) return "NCCL_SOCKET_FAMILY leaves it out";
  if (!filter.admits(candidate.interface)) return "NCCL_SOCKET_IFNAME leaves it out";
  const auto same = [&](const InterfaceAddress& c) { return c.interface == candidate.interface; };
  if (std::any_of(chosen.begin(), chosen.end(), same)) return "the interface has a better address";
  const bool last_resort =
      preference(candidate) >= kLastResort && ((candidate.loopback && candidate.ipv6) || !filter.names(candidate.interface));
  if (last_resort && !chosen.empty()) return "others have no use for it, and there is a better one";
  if (chosen.size() == kMaxInterfaces) return fmt::format("{} are enough", kMaxInterfaces);
  return {};
}

// Parts of "ip%scope:port", "[ip%scope]:port" or "ip%scope".
struct Scope {
  std::size_t begin = std::string::npos;  // of '%'
  std::size_t end = std::string::npos;
};
Scope find_scope(const std::string& address) {
  const std::size_t percent = address.find('%');
  if (percent == std::string::npos) return {};
  return {percent, std::min(address.find(']', percent), address.size())};
}

std::vector<std::string> interfaces_of_this_machine() {
  std::vector<std::string> names;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return names;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const std::optional<InterfaceAddress> found = read_interface(*entry, {});
    if (found && found->running && found->ipv6 && found->link_local) names.push_back(found->interface);
  }
  return names;
}

}  // namespace

std::string describe(const InterfaceAddress& address) { return fmt::format("{} ({})", address.interface, address.address); }

std::string describe(const std::vector<InterfaceAddress>& addresses) {
  std::vector<std::string> texts;
  for (const InterfaceAddress& a : addresses) texts.push_back(describe(a));
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

Result<AddressChoice> choose_addresses(std::vector<InterfaceAddress> seen, const std::string& ifname_filter,
                                       const std::string& family) {
  if (!family.empty() && family != "AF_INET" && family != "AF_INET6")
    return fail(Code::invalid_argument, "NCCL_SOCKET_FAMILY='{}': allowed are AF_INET and AF_INET6", family);
  const Result<NameFilter> filter = NameFilter::parse("NCCL_SOCKET_IFNAME", ifname_filter);
  if (!filter.is_ok()) return filter.status();

  std::stable_sort(seen.begin(), seen.end(), comes_before);
  AddressChoice choice;
  for (const InterfaceAddress& candidate : seen) {
    const std::string reason = reason_against(candidate, choice.chosen, *filter, family);
    if (reason.empty())
      choice.chosen.push_back(candidate);
    else
      choice.left_out.push_back(describe(candidate) + ": " + reason);
  }
  if (choice.chosen.empty())
    return fail(Code::invalid_argument, "no running interface for NCCL_SOCKET_IFNAME='{}', NCCL_SOCKET_FAMILY='{}'; seen: {}",
                ifname_filter, family, choice.left_out.empty() ? "none" : fmt::format("{}", fmt::join(choice.left_out, "; ")));
  return choice;
}

Result<AddressChoice> consider_addresses(const std::string& ifname_filter, const std::string& family, const std::string& near) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail(Code::system_error, "getifaddrs: {}", errno_text(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  const std::vector<unsigned char> near_bytes = bytes_of(near);
  std::vector<InterfaceAddress> seen;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next)
    if (std::optional<InterfaceAddress> found = read_interface(*entry, near_bytes)) seen.push_back(*std::move(found));
  return choose_addresses(std::move(seen), ifname_filter, family);
}

Result<std::vector<InterfaceAddress>> usable_addresses(const std::string& ifname_filter, const std::string& family) {
  Result<AddressChoice> choice = consider_addresses(ifname_filter, family, "");
  if (!choice.is_ok()) return choice.status();
  return std::move(choice->chosen);
}

std::string without_scope(const std::string& address) {
  const Scope scope = find_scope(address);
  return scope.begin == std::string::npos ? address : address.substr(0, scope.begin) + address.substr(scope.end);
}

std::string scope_of(const std::string& address) {
  const Scope scope = find_scope(address);
  return scope.begin == std::string::npos ? "" : address.substr(scope.begin + 1, scope.end - scope.begin - 1);
}

bool is_loopback(const std::string& ip) {
  const std::vector<unsigned char> bytes = bytes_of(ip);
  if (bytes.size() == 4) return bytes[0] == 127;
  return bytes.size() == 16 && bytes.back() == 1 &&
         std::all_of(bytes.begin(), bytes.end() - 1, [](unsigned char b) { return b == 0; });
}

bool is_link_local(const std::string& ip) {
  const std::vector<unsigned char> bytes = bytes_of(ip);
  if (bytes.size() == 4) return bytes[0] == 169 && bytes[1] == 254;
  return bytes.size() == 16 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

std::vector<std::string> with_scopes(const std::string& address, const std::vector<std::string>& interfaces) {
  const Result<HostPort> where = parse_host_port(address);
  if (!where.is_ok() || where->host.find(':') == std::string::npos || !is_link_local(where->host)) return {address};
  std::vector<std::string> all;
  const std::string bare = without_scope(where->host), own = scope_of(where->host);
  for (const bool first : {true, false})
    for (const std::string& interface : interfaces)
      if ((interface == own) == first) all.push_back(to_text({bare + "%" + interface, where->port}));
  if (all.empty()) all.push_back(address);
  return all;
}

std::vector<std::string> with_own_scopes(const std::string& address, const std::string& first) {
  if (address.find("fe") == std::string::npos) return {address};  // spares the look at the interfaces
  std::vector<std::string> interfaces = interfaces_of_this_machine();
  std::stable_partition(interfaces.begin(), interfaces.end(), [&](const std::string& name) { return name == first; });
  return with_scopes(without_scope(address), interfaces);
}

}  // namespace shoal::link
