// SPDX-License-Identifier: Apache-2.0
#include "train/search/cluster.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <sstream>

#include "train/error.h"

namespace shoal::train {
namespace {

using nlohmann::json;

constexpr double kMostRanks = 1024;

// An object of the file and its name, "" for the file's own.
struct Object {
  const json& value;
  std::string name;

  std::string name_of(const char* field) const { return name.empty() ? field : name + "." + field; }
};

// For an error. What is nested may be so without end, and to print it would take a call a level.
std::string shown(const json& value) { return value.is_primitive() ? value.dump() : fmt::format("an {}", value.type_name()); }

void require_fields(const Object& object, std::initializer_list<const char*> known) {
  if (!object.value.is_object()) throw failure(Exit::usage, "{} is not an object", object.name.empty() ? "it" : object.name);
  for (const auto& [field, value] : object.value.items())
    if (std::find(known.begin(), known.end(), field) == known.end())
      throw failure(Exit::usage, "{} is not known", object.name_of(field.c_str()));
}

double number(const Object& object, const char* field, double from, double up_to) {
  const auto found = object.value.find(field);
  if (found == object.value.end()) throw failure(Exit::usage, "{} is missing", object.name_of(field));
  const double value = found->is_number() ? found->get<double>() : NAN;
  if (!(value >= from && value <= up_to))
    throw failure(Exit::usage, "{} is {}: not a number from {:g} to {:g}", object.name_of(field), shown(*found), from, up_to);
  return value;
}

std::size_t whole(const Object& object, const char* field) {
  const double value = number(object, field, 1, kMostRanks);
  if (value != std::floor(value)) throw failure(Exit::usage, "{} is {}: not a whole number", object.name_of(field), value);
  return static_cast<std::size_t>(value);
}

Object part(const Object& object, const char* field) {
  const auto found = object.value.find(field);
  if (found == object.value.end()) throw failure(Exit::usage, "{} is missing", object.name_of(field));
  return {*found, object.name_of(field)};
}

Wire wire(const Object& object) {
  require_fields(object, {"latency_s", "bandwidth_Bps"});
  return {.latency_s = number(object, "latency_s", 0, 1e3), .bandwidth_Bps = number(object, "bandwidth_Bps", 1, 1e18)};
}

}  // namespace

SearchCluster parse_search_cluster(std::string_view text) {
  const json file = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (file.is_discarded()) throw failure(Exit::usage, "it is not JSON");
  const Object whole_file{file, ""};
  require_fields(whole_file, {"name", "hosts", "ranks_per_host", "within", "nics", "device"});
  SearchCluster cluster;
  cluster.hosts = whole(whole_file, "hosts");
  cluster.ranks_per_host = whole(whole_file, "ranks_per_host");
  if (static_cast<double>(cluster.ranks()) > kMostRanks)
    throw failure(Exit::usage, "hosts {} of ranks_per_host {} are more than {} ranks", cluster.hosts, cluster.ranks_per_host,
                  kMostRanks);
  if (const auto name = file.find("name"); name != file.end()) {
    if (!name->is_string()) throw failure(Exit::usage, "name is {}: not a text", shown(*name));
    cluster.name = name->get<std::string>();
  }
  if (cluster.ranks_per_host > 1) cluster.within = wire(part(whole_file, "within"));
  if (cluster.hosts > 1) cluster.nics = wire(part(whole_file, "nics"));
  const Object device = part(whole_file, "device");
  require_fields(device, {"flops", "memory_bytes"});
  cluster.flops = number(device, "flops", 1, 1e20);
  cluster.memory_bytes = number(device, "memory_bytes", 1, 1e18);
  return cluster;
}

SearchCluster load_search_cluster(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!(text << file.rdbuf())) throw failure(Exit::usage, "--cluster: {} cannot be read", path);
  try {
    return parse_search_cluster(text.str());
  } catch (const Error& error) {
    throw failure(Exit::usage, "--cluster: {}: {}", path, error.what());
  }
}

}  // namespace shoal::train
