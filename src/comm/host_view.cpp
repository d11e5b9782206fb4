// SPDX-License-Identifier: Apache-2.0
#include "comm/host_view.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>

#include "core/conf_file.h"
#include "core/ib_options.h"
#include "core/log.h"
#include "topo/discovery.h"
#include "topo/files/host_json.h"
#include "topo/files/nccl_xml.h"

namespace shoal::comm {
namespace {

constexpr std::size_t kPortsOfRank = 4;  // as the transport over verbs takes at most
constexpr std::int64_t kMostMbps = 1'000'000'000;
constexpr std::string_view kNetwork = "network_Mbps=";

std::int64_t fastest_interface(const topo::Host& host) {
  std::int64_t fastest = 0;
  for (const topo::Interface& each : host.interfaces)
    if (!each.loopback && each.up.value_or(true)) fastest = std::max(fastest, each.Mbps.value_or(0));
  return fastest;
}

std::int64_t fastest_ports(const topo::Host& host) {
  const Result<IbOptions> ib = parse_ib_options(variable);
  if (!ib.is_ok() || ib->disable) return 0;
  std::vector<std::int64_t> speeds;
  for (const topo::RdmaDevice& device : host.rdma)
    for (const topo::RdmaPort& port : device.ports)
      if ((port.state.empty() || port.state == "ACTIVE") && ib->devices.admits(device.name, port.number))
        speeds.push_back(port.Mbps.value_or(0));
  std::ranges::sort(speeds, std::greater());
  std::int64_t together = 0;
  for (std::size_t i = 0; i < std::min(speeds.size(), kPortsOfRank); ++i) together += speeds[i];
  return together;
}

Status dump(const TopoOptions& options, const topo::Host& host) {
  std::ofstream file(options.dump_file, std::ios::trunc);
  file << topo::nccl_xml_of(host);
  file.close();
  if (file) return {};
  return fail(Code::system_error, "{}='{}': cannot be written: {}", options.dump_variable, options.dump_file, errno_text(errno));
}

}  // namespace

HostView view_of(const topo::Host& host) {
  return {.network_Mbps = std::min(kMostMbps, std::max(fastest_interface(host), fastest_ports(host)))};
}

Result<HostView> look_at_host(Rank rank, const TopoOptions& options) {
  const bool dumps = !options.dump_file.empty() && options.dump_rank == rank.value;
  Result<topo::Host> host = !options.file.empty() ? topo::load_host(options.file)
                            : dumps               ? topo::discover()
                                                  : topo::discover_speeds();
  if (!host.is_ok()) return fail(host.status().code(), "{}={}", options.file_variable, host.status().text());
  if (dumps)
    if (Status written = dump(options, *host); !written.is_ok()) return written;
  return view_of(*host);
}

Result<HostView> look_at_host(Rank rank) {
  static const Result<TopoOptions> options = parse_topo_options(variable);
  if (!options.is_ok()) return options.status();
  if (!options->file.empty() || !options->dump_file.empty()) return look_at_host(rank, *options);
  static const HostView once = view_of(topo::discover_speeds());
  return once;
}

std::string encode(const HostView& view) { return fmt::format("{}{}", kNetwork, view.network_Mbps); }

Result<std::vector<HostView>> decode_host_views(std::span<const std::string> texts) {
  std::vector<HostView> views;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const std::string& text = texts[rank];
    HostView view;
    const char* const first = text.data() + std::min(text.size(), kNetwork.size());
    const auto [end, error] = std::from_chars(first, text.data() + text.size(), view.network_Mbps);
    if (!text.starts_with(kNetwork) || error != std::errc() || end != text.data() + text.size() || view.network_Mbps < 0 ||
        view.network_Mbps > kMostMbps)
      return fail(Code::invalid_usage,
                  "rank {} told of its host what this library does not understand (\"{}\"): all ranks must run the same version",
                  rank, text.substr(0, 80));
    views.push_back(view);
  }
  return views;
}

}  // namespace shoal::comm
