// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "topo/files/host_json.h"

namespace shoal::topo {
namespace {

using Json = nlohmann::ordered_json;

// Leaves out what is unknown or empty.
class Object {
 public:
  Object& put(const char* key, const std::string& text) {
    if (!text.empty()) json_[key] = text;
    return *this;
  }
  Object& put(const char* key, const ProcessorSet& set) { return put(key, text_of(set)); }
  template <typename Value>
  Object& put(const char* key, const std::optional<Value>& value) {
    if (value) json_[key] = *value;
    return *this;
  }
  template <typename Value>
  Object& put(const char* key, const std::vector<Value>& values) {
    if (!values.empty()) json_[key] = values;
    return *this;
  }
  Object& always(const char* key, Json value) {
    json_[key] = std::move(value);
    return *this;
  }
  Object& index(const char* key, int value) {
    if (value >= 0) json_[key] = value;
    return *this;
  }
  Object& flag(const char* key, bool value) {
    if (value) json_[key] = true;
    return *this;
  }
  template <typename Value, typename Write>
  Object& list(const char* key, const std::vector<Value>& values, Write write) {
    if (values.empty()) return *this;
    Json all = Json::array();
    for (const Value& each : values) all.push_back(write(each));
    json_[key] = std::move(all);
    return *this;
  }
  Json take() { return json_.is_null() ? Json::object() : std::move(json_); }

 private:
  Json json_;
};

Json write_package(const Package& p) {
  return Object()
      .always("number", p.number)
      .put("model", p.model)
      .put("vendor", p.vendor)
      .put("family", p.family)
      .put("model_number", p.model_number)
      .put("processors", p.processors)
      .take();
}

Json write_core(const Core& core) { return Object().put("processors", core.processors).take(); }

Json write_cache(const Cache& c) {
  return Object().always("level", c.level).always("bytes", c.bytes).put("processors", c.processors).take();
}

Json write_node(const NumaNode& n) {
  return Object()
      .always("number", n.number)
      .put("memory_bytes", n.memory_bytes)
      .put("processors", n.processors)
      .put("distances", n.distances)
      .take();
}

Json write_pci(const PciDevice& d) {
  return Object()
      .always("bus_id", d.bus_id)
      .index("parent", d.parent)
      .put("class_code", d.class_code)
      .put("vendor", d.vendor)
      .put("product", d.product)
      .put("speed_GTs", d.speed_GTs)
      .put("most_GTs", d.most_GTs)
      .put("width", d.width)
      .put("most_width", d.most_width)
      .put("numa", d.numa)
      .take();
}

Json write_interface(const Interface& i) {
  return Object()
      .always("name", i.name)
      .put("up", i.up)
      .flag("loopback", i.loopback)
      .put("Mbps", i.Mbps)
      .put("mtu", i.mtu)
      .put("addresses", i.addresses)
      .index("pci", i.pci)
      .put("numa", i.numa)
      .take();
}

Json write_gid(const Gid& g) {
  return Object().always("index", g.index).put("gid", g.gid).put("type", g.type).put("interface", g.interface).take();
}

Json write_port(const RdmaPort& p) {
  return Object()
      .always("number", p.number)
      .put("state", p.state)
      .put("link_layer", p.link_layer)
      .put("Mbps", p.Mbps)
      .list("gids", p.gids, write_gid)
      .take();
}

Json write_rdma(const RdmaDevice& d) {
  return Object()
      .always("name", d.name)
      .put("guid", d.guid)
      .list("ports", d.ports, write_port)
      .index("pci", d.pci)
      .put("numa", d.numa)
      .take();
}

Json write_link(const GpuLink& l) { return Object().index("peer", l.peer).always("links", l.links).take(); }

Json write_gpu(const Gpu& g) {
  return Object()
      .always("number", g.number)
      .put("name", g.name)
      .put("memory_bytes", g.memory_bytes)
      .put("compute_capability", g.compute_capability)
      .list("links", g.links, write_link)
      .put("reaches", g.reaches)
      .index("pci", g.pci)
      .put("numa", g.numa)
      .take();
}

Json write_limits(const Limits& l) {
  const bool unlimited = l.memlock_bytes == Limits::kUnlimited;
  return Object()
      .put("cpu_quota", l.cpu_quota)
      .put("shm_bytes", l.shm_bytes)
      .put("shm_free_bytes", l.shm_free_bytes)
      .put("memlock_bytes", unlimited ? std::nullopt : l.memlock_bytes)
      .flag("memlock_unlimited", unlimited)
      .take();
}

}  // namespace

std::string json_of(const Host& host) {
  const Json json = Object()
                        .put("name", host.name)
                        .put("id", host.id)
                        .put("architecture", host.architecture)
                        .put("processors", host.processors)
                        .put("ours", host.ours)
                        .put("memory_bytes", host.memory_bytes)
                        .always("limits", write_limits(host.limits))
                        .list("packages", host.packages, write_package)
                        .list("cores", host.cores, write_core)
                        .list("caches", host.caches, write_cache)
                        .list("nodes", host.nodes, write_node)
                        .list("pci", host.pci, write_pci)
                        .list("interfaces", host.interfaces, write_interface)
                        .list("rdma", host.rdma, write_rdma)
                        .list("gpus", host.gpus, write_gpu)
                        .flag("p2p_known", host.p2p_known)
                        .take();
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shoal::topo
