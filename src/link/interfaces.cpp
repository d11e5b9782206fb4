// SPDX-License-Identifier: Apache-2.0
#include "link/interfaces.h"

#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <tuple>

#include "core/name_filter.h"

namespace shoal::link {
namespace {

bool is_link_local(const sockaddr& address) {
  if (address.sa_family == AF_INET6) return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 16 == 0xA9FE;  // 169.254.0.0/16
}

// Nothing for addresses that no peer could use: other families, interfaces that are down.
std::optional<InterfaceAddress> read_interface(const ifaddrs& entry) {
  constexpr unsigned kRunning = IFF_UP | IFF_RUNNING;
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & kRunning) != kRunning) return std::nullopt;
  const int family = entry.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) return std::nullopt;
  char text[NI_MAXHOST];
  const socklen_t length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (getnameinfo(entry.ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return std::nullopt;
  return InterfaceAddress{entry.ifa_name, text, family == AF_INET6, (entry.ifa_flags & IFF_LOOPBACK) != 0,
                          is_link_local(*entry.ifa_addr)};
}

// The order in which interfaces are offered when nothing is asked for: InfiniBand first, bridges of containers and virtual
// machines last.
int kind_order(const std::string& name) {
  if (name.starts_with("ib")) return 0;
  return name.starts_with("docker") || name.starts_with("virbr") ? 2 : 1;
}

auto preference(const InterfaceAddress& a) { return std::tuple(a.loopback, a.link_local, kind_order(a.interface), a.ipv6); }

std::string list_of(const std::vector<InterfaceAddress>& seen) {
  std::vector<std::string> texts;
  for (const InterfaceAddress& a : seen) texts.push_back(fmt::format("{} ({})", a.interface, a.address));
  return seen.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Result<std::vector<InterfaceAddress>> choose_addresses(std::vector<InterfaceAddress> seen, const std::string& ifname_filter,
                                                       const std::string& family) {
  if (!family.empty() && family != "AF_INET" && family != "AF_INET6")
    return fail(Code::invalid_argument, "NCCL_SOCKET_FAMILY='{}': allowed are AF_INET and AF_INET6", family);
  const Result<NameFilter> filter = NameFilter::parse("NCCL_SOCKET_IFNAME", ifname_filter);
  if (!filter.is_ok()) return filter.status();

  std::stable_sort(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return preference(a) < preference(b); });
  std::vector<InterfaceAddress> chosen;
  for (const InterfaceAddress& candidate : seen) {
    const bool wanted_family = family.empty() || (family == "AF_INET6") == candidate.ipv6;
    const bool has_better =
        std::any_of(chosen.begin(), chosen.end(), [&](const auto& c) { return c.interface == candidate.interface; });
    if (wanted_family && !has_better && filter->admits(candidate.interface)) chosen.push_back(candidate);
  }
  if (chosen.size() > kMaxInterfaces) chosen.resize(kMaxInterfaces);
  if (chosen.empty())
    return fail(Code::invalid_argument, "no running interface for NCCL_SOCKET_IFNAME='{}', NCCL_SOCKET_FAMILY='{}'; seen: {}",
                ifname_filter, family, list_of(seen));
  return chosen;
}

Result<std::vector<InterfaceAddress>> usable_addresses(const std::string& ifname_filter, const std::string& family) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail(Code::system_error, "getifaddrs: {}", errno_text(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<InterfaceAddress> seen;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next)
    if (std::optional<InterfaceAddress> found = read_interface(*entry)) seen.push_back(*std::move(found));
  return choose_addresses(std::move(seen), ifname_filter, family);
}

}  // namespace shoal::link
