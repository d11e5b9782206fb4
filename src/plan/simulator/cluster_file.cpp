// SPDX-License-Identifier: Apache-2.0
#include "plan/simulator/cluster_file.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace shoal::plan {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxText = 16 << 20;

// The fields of one object, each read once; the first error is kept.
class Fields {
 public:
  Fields(const Json& object, std::string path, Status& failure) : object_(object), path_(std::move(path)), failure_(failure) {
    if (!object.is_object()) refuse(path_.empty() ? "the text" : path_, object, "an object");
  }

  bool has(const std::string& key) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
    return object_.is_object() && object_.contains(key);
  }
  void number(const std::string& key, double& value) {
    if (!has(key)) return;
    if (const Json& field = object_[key]; field.is_number())
      value = field.get<double>();
    else
      refuse(path_of(key), field, "a number");
  }
  void whole(const std::string& key, std::int32_t& value) {
    if (has(key)) value = whole_of(path_of(key), object_[key]);
  }
  void wholes(const std::string& key, std::vector<std::int32_t>& values) {
    if (!has(key)) return;
    const Json& field = object_[key];
    if (!field.is_array() || field.empty()) return refuse(path_of(key), field, "a list of whole numbers, not empty");
    for (std::size_t i = 0; i < field.size(); ++i) values.push_back(whole_of(fmt::format("{}[{}]", path_of(key), i), field[i]));
  }
  void text(const std::string& key, std::string& value) {
    if (!has(key)) return;
    if (const Json& field = object_[key]; field.is_string())
      value = field.get<std::string>();
    else
      refuse(path_of(key), field, "a text");
  }
  // Position in the list.
  std::size_t choice(const std::string& key, std::initializer_list<std::string_view> choices) {
    if (!has(key)) return 0;
    const Json& field = object_[key];
    std::size_t at = 0;
    std::string list;
    for (std::string_view each : choices) {
      if (field.is_string() && field.get_ref<const std::string&>() == each) return at;
      list += fmt::format("{}\"{}\"", at++ == 0 ? "" : ", ", each);
    }
    refuse(path_of(key), field, "one of " + list);
    return 0;
  }
  const Json& object(const std::string& key) const { return object_[key]; }

  // After the last field was read.
  void no_others() {
    if (!object_.is_object()) return;
    for (const auto& [key, value] : object_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        std::string list;
        for (const std::string& each : known_) list += (list.empty() ? "" : ", ") + each;
        return refuse(path_of(key), value, "not a field; there are: " + list);
      }
  }
  void both(const std::string& a, const std::string& b) {
    if (object_.is_object() && object_.contains(a) && object_.contains(b))
      refuse(path_of(b), object_[b], "not given beside " + path_of(a));
  }

 private:
  std::string path_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  std::int32_t whole_of(const std::string& path, const Json& field) {
    if (field.is_number_unsigned() && field.get<std::uint64_t>() <= 0x7fffffff) return field.get<std::int32_t>();
    refuse(path, field, "a whole number from 0 to 2147483647");
    return 0;
  }
  void refuse(const std::string& path, const Json& value, const std::string& allowed) {
    if (!failure_.is_ok()) return;
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    failure_ = fail(Code::invalid_argument, "{} is {}: {}", path, text, allowed);
  }

  const Json& object_;
  std::string path_;
  Status& failure_;
  std::vector<std::string> known_;
};

void read_within(const Json& json, Cluster& c, Status& failure) {
  Fields fields(json, "within", failure);
  c.within.through = static_cast<Within>(fields.choice("through", {"pairs", "switch", "bus"}));
  fields.number("latency_s", c.within.latency_s);
  c.within.credit_s = c.within.latency_s;
  fields.number("credit_s", c.within.credit_s);
  fields.number("bandwidth_Bps", c.within.bandwidth_Bps);
  fields.no_others();
}

void read_nics(const Json& json, Cluster& c, Status& failure) {
  Fields fields(json, "nics", failure);
  fields.whole("per_host", c.nics.per_host);
  fields.wholes("of_local", c.nics.of_local);
  fields.number("latency_s", c.nics.latency_s);
  c.nics.credit_s = c.nics.latency_s;
  fields.number("credit_s", c.nics.credit_s);
  double both_ways = kUnlimited;
  fields.number("bandwidth_Bps", both_ways);
  c.nics.out_Bps = c.nics.in_Bps = both_ways;
  fields.number("out_Bps", c.nics.out_Bps);
  fields.number("in_Bps", c.nics.in_Bps);
  fields.both("bandwidth_Bps", "out_Bps");
  fields.both("bandwidth_Bps", "in_Bps");
  fields.no_others();
}

void read_leaves(const Json& json, Cluster& c, Status& failure) {
  Fields fields(json, "leaves", failure);
  fields.whole("hosts", c.leaves.hosts);
  c.leaves.by_rail = fields.choice("by", {"host", "rail"}) == 1;
  fields.number("latency_s", c.leaves.latency_s);
  fields.number("uplink_Bps", c.leaves.uplink_Bps);
  double oversubscription = 1;
  fields.number("oversubscription", oversubscription);
  fields.both("uplink_Bps", "oversubscription");
  fields.no_others();
  if (!failure.is_ok()) return;
  if (!(oversubscription > 0 && oversubscription <= 1e6))
    failure = fail(Code::invalid_argument, "leaves.oversubscription is {}: a number above 0, at most 1e6", oversubscription);
  else if (oversubscription > 1) {
    const std::int32_t hosts = c.leaves.hosts == 0 ? c.hosts : c.leaves.hosts;
    c.leaves.uplink_Bps = hosts * (c.leaves.by_rail ? 1.0 : c.nics.per_host) * c.nics.out_Bps / oversubscription;
  }
}

Status read(const Json& json, Cluster& c) {
  Status failure;
  Fields fields(json, "", failure);
  fields.text("name", c.name);
  if (!fields.has("hosts") && failure.is_ok())
    return Status(Code::invalid_argument, "hosts is missing: how many hosts there are");
  fields.whole("hosts", c.hosts);
  fields.whole("ranks_per_host", c.ranks_per_host);
  fields.wholes("host_of_rank", c.host_of_rank);
  fields.both("ranks_per_host", "host_of_rank");
  fields.number("overhead_s", c.overhead_s);
  fields.number("reduce_Bps", c.reduce_Bps);
  fields.number("copy_Bps", c.copy_Bps);
  fields.whole("cores_per_host", c.cores_per_host);
  fields.whole("credits", c.credits);
  if (fields.has("within")) read_within(fields.object("within"), c, failure);
  if (fields.has("nics")) read_nics(fields.object("nics"), c, failure);
  if (fields.has("leaves")) read_leaves(fields.object("leaves"), c, failure);
  fields.no_others();
  return failure.is_ok() ? validate(c) : failure;
}

Json number_or_none(double value) { return std::isinf(value) ? Json() : Json(value); }

void drop_nulls(Json& object) {
  for (auto it = object.begin(); it != object.end();) it = it->is_null() ? object.erase(it) : std::next(it);
}

}  // namespace

Result<Cluster> parse_cluster(std::string_view text) {
  if (text.size() > kMaxText)
    return fail(Code::invalid_argument, "a cluster's description of {} bytes: at most {}", text.size(), kMaxText);
  std::vector<std::set<std::string>> open;  // fields seen of each object that is being read
  std::string twice;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > 8) return false;  // nothing that deep is read; not kept, so that destroying it is cheap
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.empty() && !open.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  try {
    const Json json = Json::parse(text, watch);
    if (!twice.empty()) return fail(Code::invalid_argument, "\"{}\" comes twice in one object", twice);
    Cluster cluster;
    if (Status read_status = read(json, cluster); !read_status.is_ok()) return read_status;
    return cluster;
  } catch (const Json::exception& error) {
    return fail(Code::invalid_argument, "not JSON: {}", error.what());
  }
}

Result<Cluster> load_cluster(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Code::system_error, "cluster file {}: {}", path, errno_text(errno));
  std::string text(kMaxText + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return fail(Code::system_error, "cluster file {}: it cannot be read", path);
  text.resize(static_cast<std::size_t>(file.gcount()));
  Result<Cluster> cluster = parse_cluster(text);
  if (!cluster.is_ok()) return fail(cluster.status().code(), "cluster file {}: {}", path, cluster.status().text());
  return cluster;
}

std::string text_of(const Cluster& c) {
  Json json = {{"name", c.name},
               {"hosts", c.hosts},
               {"overhead_s", c.overhead_s},
               {"reduce_Bps", number_or_none(c.reduce_Bps)},
               {"copy_Bps", number_or_none(c.copy_Bps)},
               {"cores_per_host", c.cores_per_host},
               {"credits", c.credits}};
  if (c.host_of_rank.empty())
    json["ranks_per_host"] = c.ranks_per_host;
  else
    json["host_of_rank"] = c.host_of_rank;
  Json within = {{"through", name_of(c.within.through)},
                 {"latency_s", c.within.latency_s},
                 {"credit_s", c.within.credit_s},
                 {"bandwidth_Bps", number_or_none(c.within.bandwidth_Bps)}};
  Json nics = {{"per_host", c.nics.per_host},
               {"latency_s", c.nics.latency_s},
               {"credit_s", c.nics.credit_s},
               {"out_Bps", number_or_none(c.nics.out_Bps)},
               {"in_Bps", number_or_none(c.nics.in_Bps)}};
  if (!c.nics.of_local.empty()) nics["of_local"] = c.nics.of_local;
  Json leaves = {{"hosts", c.leaves.hosts},
                 {"by", c.leaves.by_rail ? "rail" : "host"},
                 {"latency_s", c.leaves.latency_s},
                 {"uplink_Bps", number_or_none(c.leaves.uplink_Bps)}};
  for (Json* each : {&json, &within, &nics, &leaves}) drop_nulls(*each);
  json["within"] = within;
  json["nics"] = nics;
  json["leaves"] = leaves;
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

Result<Cluster> cluster_from(const std::string& name_or_path, World world) {
  if (name_or_path.find_first_of("./") == std::string::npos) return preset(name_or_path, world);
  Result<Cluster> cluster = load_cluster(name_or_path);
  if (cluster.is_ok() && cluster->ranks() < world.value)
    return fail(Code::invalid_usage, "cluster file {} has {} ranks: the world has {}", name_or_path, cluster->ranks(),
                world.value);
  return cluster;
}

}  // namespace shoal::plan
