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
constexpr int kMostNode = 65535;
constexpr std::string_view kNetwork = "network_Mbps=", kNode = " node=";

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

int own_node(const topo::Host& host) {
  for (const topo::NumaNode& node : host.nodes)
    if (!host.ours.empty() && node.number <= kMostNode && node.processors.covers(host.ours)) return node.number;
  return -1;
}

// Takes `name` and a number from the front of the text.
template <typename Number>
bool take(std::string_view& text, std::string_view name, Number least, Number most, Number& value) {
  if (!text.starts_with(name)) return false;
  text.remove_prefix(name.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < least || value > most) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
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
  return {.network_Mbps = std::min(kMostMbps, std::max(fastest_interface(host), fastest_ports(host))), .node = own_node(host)};
}

Result<HostView> look_at_host(Rank rank, const TopoOptions& options) {
  const bool dumps = !options.dump_file.empty() && options.dump_rank == rank.value;
  Result<topo::Host> host = !options.file.empty() ? topo::load_host(options.file)
                            : dumps               ? topo::discover()
                                                  : topo::discover_briefly();
  if (!host.is_ok()) return fail(host.status().code(), "{}={}", options.file_variable, host.status().text());
  if (dumps)
    if (Status written = dump(options, *host); !written.is_ok()) return written;
  return view_of(*host);
}

Result<HostView> look_at_host(Rank rank) {
  static const Result<TopoOptions> options = parse_topo_options(variable);
  if (!options.is_ok()) return options.status();
  if (!options->file.empty() || !options->dump_file.empty()) return look_at_host(rank, *options);
  static const HostView once = view_of(topo::discover_briefly());
  return once;
}

std::string encode(const HostView& view) { return fmt::format("{}{}{}{}", kNetwork, view.network_Mbps, kNode, view.node); }

Result<std::vector<HostView>> decode_host_views(std::span<const std::string> texts) {
  std::vector<HostView> views;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const std::string& text = texts[rank];
    HostView view;
    std::string_view rest = text;
    if (!take(rest, kNetwork, std::int64_t{0}, kMostMbps, view.network_Mbps) || !take(rest, kNode, -1, kMostNode, view.node) ||
        !rest.empty())
      return fail(Code::invalid_usage,
                  "rank {} told of its host what this library does not understand (\"{}\"): all ranks must run the same version",
                  rank, text.substr(0, 80));
    views.push_back(view);
  }
  return views;
}

}  // namespace shoal::comm
