// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "topo/files/host_json.h"

namespace shoal::topo_tool {
namespace {

using Json = nlohmann::ordered_json;

// What tells the elements of a list apart, the first that they have.
constexpr const char* kKeys[] = {"bus_id", "name", "number", "index", "processors", "peer"};
// A host's own.
constexpr const char* kOwn[] = {"id", "addresses", "guid", "gids", "shm_free_bytes"};

// Positions in the list of PCI devices become bus ids, which mean something on the other host.
void name_places(Json& host) {
  const auto bus_id = [&](const Json& index) { return host["pci"][index.get<std::size_t>()]["bus_id"]; };
  for (const char* list : {"interfaces", "rdma", "gpus"})
    if (host.contains(list))
      for (Json& each : host[list])
        if (each.contains("pci")) each["pci"] = bus_id(each["pci"]);
  if (!host.contains("pci")) return;
  std::vector<Json> parents;
  for (const Json& each : host["pci"]) parents.push_back(each.contains("parent") ? bus_id(each["parent"]) : Json());
  for (std::size_t i = 0; i < parents.size(); ++i)
    if (!parents[i].is_null()) host["pci"][i]["parent"] = parents[i];
}

std::string short_text(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

class Comparison {
 public:
  explicit Comparison(bool all) : all_(all) {}

  void objects(const std::string& path, const Json& a, const Json& b) {
    for (const auto& [key, value] : a.items()) {
      if (is_own(path, key)) continue;
      if (!b.contains(key))
        say(path, key, fmt::format("{} -> unknown", short_text(value)), value);
      else if (value.is_object())
        objects(path + key + " ", value, b[key]);
      else if (value.is_array() && !value.empty() && value.front().is_object())
        lists(path + key, value, b[key]);
      else if (value != b[key])
        say(path, key, fmt::format("{} -> {}", short_text(value), short_text(b[key])), Json());
    }
    for (const auto& [key, value] : b.items())
      if (!a.contains(key) && !is_own(path, key)) say(path, key, fmt::format("unknown -> {}", short_text(value)), value);
  }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  bool is_own(const std::string& path, const std::string& key) const {
    if (all_) return false;
    return (path.empty() && key == "name") || std::find(std::begin(kOwn), std::end(kOwn), key) != std::end(kOwn);
  }
  void say(const std::string& path, const std::string& key, const std::string& change, const Json& list) {
    if (list.is_array() && !list.empty() && list.front().is_object())
      found_.push_back(
          fmt::format("{}{}: {} of them, only in {}", path, key, list.size(), change.starts_with("unknown") ? "B" : "A"));
    else
      found_.push_back(path.empty() ? fmt::format("{}: {}", key, change)
                                    : fmt::format("{}: {} {}", path.substr(0, path.size() - 1), key, change));
  }

  // The name of each element; those of the same name are numbered.
  static std::map<std::string, const Json*> by_name(const Json& list, bool is_gpus, std::vector<std::string>& order) {
    std::map<std::string, const Json*> named;
    for (const Json& each : list) {
      std::string name = "?";
      for (const char* key : kKeys)
        if (each.contains(key)) {
          name = short_text(each[key]);
          break;
        }
      if (each.contains("level"))
        name = "L" + short_text(each["level"]) + " of " + short_text(each.value("processors", Json("?")));
      // GPUs have names that are those of their kind.
      if (is_gpus && each.contains("number")) name = short_text(each["number"]);
      std::string unique = name;
      for (int n = 2; named.contains(unique); ++n) unique = fmt::format("{} ({})", name, n);
      named[unique] = &each;
      if (std::find(order.begin(), order.end(), unique) == order.end()) order.push_back(unique);
    }
    return named;
  }
  void lists(const std::string& path, const Json& a, const Json& b) {
    std::vector<std::string> order;
    const auto in_a = by_name(a, path == "gpus", order), in_b = by_name(b, path == "gpus", order);
    for (const std::string& name : order) {
      const auto one = in_a.find(name), other = in_b.find(name);
      if (one == in_a.end() || other == in_b.end())
        found_.push_back(fmt::format("{} {}: only in {}", path, name, one == in_a.end() ? "B" : "A"));
      else
        objects(path + " " + name + " ", *one->second, *other->second);
    }
  }

  bool all_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> differences(const topo::Host& a, const topo::Host& b, bool all) {
  Json one = Json::parse(topo::json_of(a)), other = Json::parse(topo::json_of(b));
  name_places(one);
  name_places(other);
  Comparison comparison(all);
  comparison.objects("", one, other);
  return comparison.take();
}

}  // namespace shoal::topo_tool
