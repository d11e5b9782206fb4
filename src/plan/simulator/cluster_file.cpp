// SPDX-License-Identifier: Apache-2.0
#include "plan/simulator/cluster_file.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json_fields.h"

namespace shoal::plan {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxText = 16 << 20;

using Fields = JsonFields;

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
  const Result<Json> json = parse_json(text, kMaxText);
  if (!json.is_ok()) return json.status();
  Cluster cluster;
  if (Status read_status = read(*json, cluster); !read_status.is_ok()) return read_status;
  return cluster;
}

Result<Cluster> load_cluster(const std::string& path) {
  const Result<std::string> text = read_file(path, kMaxText);
  if (!text.is_ok()) return fail(text.status().code(), "cluster file {}: {}", path, text.status().text());
  Result<Cluster> cluster = parse_cluster(*text);
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
