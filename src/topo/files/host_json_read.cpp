// SPDX-License-Identifier: Apache-2.0
#include "core/json_fields.h"
#include "topo/files/host_json.h"
#include "topo/files/nccl_xml.h"

namespace shoal::topo {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostBytes = 16 << 20;

void processors(JsonFields& fields, const std::string& key, ProcessorSet& set, Status& failure) {
  std::string text;
  fields.text(key, text);
  const Result<ProcessorSet> parsed = parse_processors(text);
  if (parsed.is_ok())
    set = *parsed;
  else if (failure.is_ok())
    failure = fail(Code::invalid_argument, "{}: {}", fields.path_of(key), parsed.status().text());
}

void place(JsonFields& fields, int& pci, std::optional<int>& numa) {
  fields.whole("pci", pci);
  fields.whole("numa", numa);
}

void read_package(Host& host, const Json& json, const std::string& path, Status& failure) {
  JsonFields fields(json, path, failure);
  Package& package = host.packages.emplace_back();
  fields.whole("number", package.number);
  fields.text("model", package.model);
  fields.text("vendor", package.vendor);
  fields.whole("family", package.family);
  fields.whole("model_number", package.model_number);
  processors(fields, "processors", package.processors, failure);
  fields.no_others();
}

void read_core(Host& host, const Json& json, const std::string& path, Status& failure) {
  JsonFields fields(json, path, failure);
  processors(fields, "processors", host.cores.emplace_back().processors, failure);
  fields.no_others();
}

void read_cache(Host& host, const Json& json, const std::string& path, Status& failure) {
  JsonFields fields(json, path, failure);
  Cache& cache = host.caches.emplace_back();
  std::optional<std::uint64_t> bytes;
  fields.whole("level", cache.level);
  fields.large("bytes", bytes);
  cache.bytes = bytes.value_or(0);
  processors(fields, "processors", cache.processors, failure);
  fields.no_others();
}

void read_node(Host& host, const Json& json, const std::string& path, Status& failure) {
  JsonFields fields(json, path, failure);
  NumaNode& node = host.nodes.emplace_back();
  fields.whole("number", node.number);
  fields.large("memory_bytes", node.memory_bytes);
  processors(fields, "processors", node.processors, failure);
  fields.wholes("distances", node.distances);
  fields.no_others();
}

void read_pci(Host& host, const Json& json, const std::string& path, Status& failure) {
  JsonFields fields(json, path, failure);
  PciDevice& device = host.pci.emplace_back();
  fields.text("bus_id", device.bus_id);
  fields.whole("parent", device.parent);
  fields.text("class_code", device.class_code);
  fields.text("vendor", device.vendor);
  fields.text("product", device.product);
  fields.number("speed_GTs", device.speed_GTs);
  fields.number("most_GTs", device.most_GTs);
  fields.whole("width", device.width);
  fields.whole("most_width", device.most_width);
  fields.whole("numa", device.numa);
  fields.no_others();
}

void read_interface(Host& host, const Json& json, const std::string& path, Status& failure) {
  JsonFields fields(json, path, failure);
  Interface& interface = host.interfaces.emplace_back();
  fields.text("name", interface.name);
  fields.boolean("up", interface.up);
  fields.boolean("loopback", interface.loopback);
  fields.large("Mbps", interface.Mbps);
  fields.large("mtu", interface.mtu);
  fields.texts("addresses", interface.addresses);
  place(fields, interface.pci, interface.numa);
  fields.no_others();
}

void read_gid(RdmaPort& port, const Json& json, const std::string& path, Status& failure) {
  JsonFields fields(json, path, failure);
  Gid& gid = port.gids.emplace_back();
  fields.whole("index", gid.index);
  fields.text("gid", gid.gid);
  fields.text("type", gid.type);
  fields.text("interface", gid.interface);
  fields.no_others();
}

void read_port(RdmaDevice& device, const Json& json, const std::string& path, Status& failure) {
  JsonFields fields(json, path, failure);
  RdmaPort& port = device.ports.emplace_back();
  fields.whole("number", port.number);
  fields.text("state", port.state);
  fields.text("link_layer", port.link_layer);
  fields.large("Mbps", port.Mbps);
  fields.list("gids", [&](const Json& each, const std::string& at, Status& s) { read_gid(port, each, at, s); });
  fields.no_others();
}

void read_rdma(Host& host, const Json& json, const std::string& path, Status& failure) {
  JsonFields fields(json, path, failure);
  RdmaDevice& device = host.rdma.emplace_back();
  fields.text("name", device.name);
  fields.text("guid", device.guid);
  fields.list("ports", [&](const Json& each, const std::string& at, Status& s) { read_port(device, each, at, s); });
  place(fields, device.pci, device.numa);
  fields.no_others();
}

void read_link(Gpu& gpu, const Json& json, const std::string& path, Status& failure) {
  JsonFields fields(json, path, failure);
  GpuLink& link = gpu.links.emplace_back();
  fields.whole("peer", link.peer);
  fields.whole("links", link.links);
  fields.no_others();
}

void read_gpu(Host& host, const Json& json, const std::string& path, Status& failure) {
  JsonFields fields(json, path, failure);
  Gpu& gpu = host.gpus.emplace_back();
  fields.whole("number", gpu.number);
  fields.text("name", gpu.name);
  fields.large("memory_bytes", gpu.memory_bytes);
  fields.whole("compute_capability", gpu.compute_capability);
  fields.list("links", [&](const Json& each, const std::string& at, Status& s) { read_link(gpu, each, at, s); });
  fields.wholes("reaches", gpu.reaches);
  place(fields, gpu.pci, gpu.numa);
  fields.no_others();
}

void read_limits(Limits& limits, const Json& json, Status& failure) {
  JsonFields fields(json, "limits", failure);
  bool unlimited = false;
  fields.number("cpu_quota", limits.cpu_quota);
  fields.large("shm_bytes", limits.shm_bytes);
  fields.large("shm_free_bytes", limits.shm_free_bytes);
  fields.large("memlock_bytes", limits.memlock_bytes);
  fields.boolean("memlock_unlimited", unlimited);
  fields.both("memlock_bytes", "memlock_unlimited");
  if (unlimited) limits.memlock_bytes = Limits::kUnlimited;
  fields.no_others();
}

template <typename Read>
auto into(Host& host, Read read) {
  return [&host, read](const Json& json, const std::string& path, Status& failure) { read(host, json, path, failure); };
}

Status read(const Json& json, Host& host) {
  Status failure;
  JsonFields fields(json, "", failure);
  fields.text("name", host.name);
  fields.text("id", host.id);
  fields.text("architecture", host.architecture);
  processors(fields, "processors", host.processors, failure);
  processors(fields, "ours", host.ours, failure);
  fields.large("memory_bytes", host.memory_bytes);
  if (fields.has("limits")) read_limits(host.limits, fields.object("limits"), failure);
  fields.list("packages", into(host, read_package));
  fields.list("cores", into(host, read_core));
  fields.list("caches", into(host, read_cache));
  fields.list("nodes", into(host, read_node));
  fields.list("pci", into(host, read_pci));
  fields.list("interfaces", into(host, read_interface));
  fields.list("rdma", into(host, read_rdma));
  fields.list("gpus", into(host, read_gpu));
  fields.boolean("p2p_known", host.p2p_known);
  fields.no_others();
  return failure.is_ok() ? validate(host) : failure;
}

}  // namespace

Result<Host> parse_host(std::string_view text) {
  const Result<Json> json = parse_json(text, kMostBytes);
  if (!json.is_ok()) return json.status();
  Host host;
  if (Status s = read(*json, host); !s.is_ok()) return s;
  return host;
}

Result<Host> load_host(const std::string& path) {
  const auto with_path = [&](const Status& s) { return fail(s.code(), "{}: {}", path, s.text()); };
  const Result<std::string> text = read_file(path, kMostBytes);
  if (!text.is_ok()) return with_path(text.status());
  const std::size_t first = text->find_first_not_of(" \t\r\n");
  Result<Host> host = first != std::string::npos && (*text)[first] == '<' ? parse_nccl_xml(*text) : parse_host(*text);
  if (!host.is_ok()) return with_path(host.status());
  return host;
}

}  // namespace shoal::topo
