// SPDX-License-Identifier: Apache-2.0
// Cluster descriptions: what a file may say, what it is told when it says something else, and where ranks end up.
#include "plan/simulator/cluster.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "plan/simulator/cluster_file.h"
#include "plan/simulator/symmetry.h"

using namespace shoal;
using namespace shoal::plan;

namespace {

std::string error_of(std::string_view text) {
  const Result<Cluster> cluster = parse_cluster(text);
  return cluster.is_ok() ? "" : std::string(cluster.status().text());
}

constexpr std::string_view kTwoRacks = R"({
  "name": "two racks", "hosts": 16, "ranks_per_host": 8, "overhead_s": 1e-6, "reduce_Bps": 8e9, "credits": 3,
  "within": {"through": "switch", "latency_s": 1e-6, "bandwidth_Bps": 4e11},
  "nics": {"per_host": 2, "of_local": [0, 0, 0, 0, 1, 1, 1, 1], "latency_s": 5e-6, "bandwidth_Bps": 5e10, "credit_s": 0},
  "leaves": {"hosts": 8, "latency_s": 2e-6, "oversubscription": 2}
})";

}  // namespace

TEST_CASE("cluster file: everything it says is taken") {
  Result<Cluster> cluster = parse_cluster(kTwoRacks);
  INFO(cluster.status().text());
  REQUIRE(cluster.is_ok());
  CHECK(cluster->name == "two racks");
  CHECK(cluster->ranks() == 128);
  CHECK(cluster->overhead_s == 1e-6);
  CHECK(cluster->reduce_Bps == 8e9);
  CHECK(std::isinf(cluster->copy_Bps));
  CHECK(cluster->credits == 3);
  CHECK(cluster->within.through == Within::switched);
  CHECK(cluster->within.credit_s == 1e-6);  // the latency, unless said otherwise
  CHECK(cluster->nics.credit_s == 0);
  CHECK(cluster->nics.in_Bps == 5e10);
  CHECK(cluster->nics.out_Bps == 5e10);
  CHECK(cluster->leaves.uplink_Bps == 8 * 2 * 5e10 / 2);

  const std::vector<Place> all = places(*cluster, {128});
  CHECK(all[0].nic == 0);
  CHECK(all[3].nic == 0);
  CHECK(all[4].nic == 1);
  CHECK(all[15].host == 1);
  CHECK(all[15].nic == 3);
  CHECK(all[63].leaf == 0);
  CHECK(all[64].leaf == 1);
}

TEST_CASE("cluster file: the least is a number of hosts, and then nothing costs anything") {
  const Result<Cluster> cluster = parse_cluster(R"({"hosts": 3})");
  REQUIRE(cluster.is_ok());
  CHECK(cluster->ranks() == 3);
  CHECK(std::isinf(cluster->nics.out_Bps));
  CHECK(std::isinf(cluster->leaves.uplink_Bps));
}

TEST_CASE("cluster file: errors name the field, what it is and what it may be") {
  CHECK(error_of(R"({})") == "hosts is missing: how many hosts there are");
  CHECK(error_of(R"([])") == "the text is []: an object");
  CHECK(error_of(R"({"hosts": 0})") == "hosts is 0: a whole number from 1 to 1048576");
  CHECK(error_of(R"({"hosts": -1})") == "hosts is -1: a whole number from 0 to 2147483647");
  CHECK(error_of(R"({"hosts": 1.5})") == "hosts is 1.5: a whole number from 0 to 2147483647");
  CHECK(error_of(R"({"hosts": 1048576, "ranks_per_host": 2})") ==
        "hosts is 1048576 and ranks_per_host is 2: at most 1048576 ranks together");
  CHECK(error_of(R"({"hosts": 2, "ranks": 4})").rfind("ranks is 4: not a field; there are: name, hosts, ranks_per_host", 0) == 0);
  CHECK(error_of(R"({"hosts": 2, "hosts": 3})") == "\"hosts\" comes twice in one object");
  CHECK(error_of(R"({"hosts": 2, "ranks_per_host": 1, "host_of_rank": [0, 1]})") ==
        "host_of_rank is [0,1]: not given beside ranks_per_host");
  CHECK(error_of(R"({"hosts": 2, "host_of_rank": [0, 2]})") == "host_of_rank[1] is 2: a whole number from 0 to 1");
  CHECK(error_of(R"({"hosts": 2, "host_of_rank": []})") == "host_of_rank is []: a list of whole numbers, not empty");
  CHECK(error_of(R"({"hosts": 2, "host_of_rank": [0, "b"]})") == "host_of_rank[1] is \"b\": a whole number from 0 to 2147483647");
  CHECK(error_of(R"({"hosts": 2, "overhead_s": -1e-6})") == "overhead_s is -1e-06: a number of seconds from 0 to 1e6");
  CHECK(error_of(R"({"hosts": 2, "overhead_s": "1 us"})") == "overhead_s is \"1 us\": a number");
  CHECK(error_of(R"({"hosts": 2, "within": {"through": "air"}})") ==
        "within.through is \"air\": one of \"pairs\", \"switch\", \"bus\"");
  CHECK(error_of(R"({"hosts": 2, "within": 4})") == "within is 4: an object");
  CHECK(error_of(R"({"hosts": 2, "nics": {"out_Bps": -3}})") == "nics.out_Bps is -3: a number of bytes a second, at least 1e-3");
  CHECK(error_of(R"({"hosts": 2, "nics": {"per_host": 0}})") == "nics.per_host is 0: a whole number from 1 to 64");
  CHECK(error_of(R"({"hosts": 2, "ranks_per_host": 2, "nics": {"of_local": [0]}})") ==
        "nics.of_local has 1 entries: one for each of the 2 ranks of a host");
  CHECK(error_of(R"({"hosts": 2, "nics": {"of_local": [1]}})") == "nics.of_local[0] is 1: a whole number from 0 to 0");
  CHECK(error_of(R"({"hosts": 2, "nics": {"bandwidth_Bps": 1, "in_Bps": 1}})") ==
        "nics.in_Bps is 1: not given beside nics.bandwidth_Bps");
  CHECK(error_of(R"({"hosts": 2, "leaves": {"oversubscription": 0}})") ==
        "leaves.oversubscription is 0: a number above 0, at most 1e6");
  CHECK(error_of(R"({"hosts": 2, "credits": 0})") == "credits is 0: a whole number from 1 to 1048576");
  CHECK(error_of("{\"hosts\": ").rfind("not JSON: ", 0) == 0);
  CHECK(error_of("").rfind("not JSON: ", 0) == 0);
  CHECK(error_of(R"({"hosts": 1e999})").rfind("not JSON: ", 0) == 0);
  CHECK(!error_of(std::string(100000, '[')).empty());
}

TEST_CASE("cluster file: what is written is read back the same") {
  std::vector<Cluster> clusters = {parse_cluster(kTwoRacks).take(), uniform({7}, 1e-6, 1e-9, 0)};
  for (const Preset& each : presets()) clusters.push_back(each.make({16}));
  clusters.push_back(parse_cluster(R"({"hosts": 2, "host_of_rank": [1, 0, 1]})").take());
  for (const Cluster& cluster : clusters) {
    const Result<Cluster> again = parse_cluster(text_of(cluster));
    INFO(text_of(cluster) << again.status().text());
    REQUIRE(again.is_ok());
    CHECK(text_of(*again) == text_of(cluster));
    CHECK(again->ranks() == cluster.ranks());
  }
}

TEST_CASE("cluster: a name is a preset, what looks like a path is a file") {
  CHECK(cluster_from("rail1024", {1024})->ranks() == 1024);
  CHECK(cluster_from("rail1024", {1025})->ranks() == 1032);
  CHECK(cluster_from("moon", {4}).status().text() ==
        "no cluster is named \"moon\": nvlink8, rail1024, ethernet25, home, wan, local, or a file's path");
  CHECK(cluster_from("./no/such.json", {4}).status().text() == "cluster file ./no/such.json: No such file or directory (2)");
  const std::string path = "cluster_test_racks.json";
  std::ofstream(path) << kTwoRacks;
  CHECK(cluster_from(path, {128}).is_ok());
  CHECK(cluster_from(path, {129}).status().text() == "cluster file " + path + " has 128 ranks: the world has 129");
  std::ofstream(path) << R"({"hosts": 0})";
  CHECK(load_cluster(path).status().text() == "cluster file " + path + ": hosts is 0: a whole number from 1 to 1048576");
  std::remove(path.c_str());
}

TEST_CASE("cluster: every preset is valid for every world and has a place for each rank") {
  for (const Preset& each : presets())
    for (std::int32_t world = 1; world <= 40; ++world) {
      const Cluster cluster = each.make({world});
      const Status status = validate(cluster);
      INFO(each.name << " " << world << " " << status.text());
      CHECK(status.is_ok());
      REQUIRE(cluster.ranks() >= world);
      CHECK(places(cluster, {world}).size() == static_cast<std::size_t>(world));
    }
}

TEST_CASE("cluster: NICs are dealt evenly to neighbours, and rails join equal NICs") {
  Cluster cluster;
  cluster.hosts = 2;
  cluster.ranks_per_host = 4;
  cluster.nics.per_host = 2;
  std::vector<std::int32_t> nics;
  for (const Place& place : places(cluster, {8})) nics.push_back(place.nic);
  CHECK(nics == std::vector<std::int32_t>{0, 0, 1, 1, 2, 2, 3, 3});
  cluster.leaves.by_rail = true;
  std::vector<std::int32_t> leaves;
  for (const Place& place : places(cluster, {8})) leaves.push_back(place.leaf);
  CHECK(leaves == std::vector<std::int32_t>{0, 0, 1, 1, 0, 0, 1, 1});
}

TEST_CASE("symmetry: a rotation must keep hosts, NICs and leaves together, and share nothing within an orbit") {
  const auto same = [](const Cluster& cluster, std::int32_t world, std::int32_t period) {
    return looks_the_same(cluster, places(cluster, {world}), period);
  };
  const Cluster flat = uniform({12}, 1e-6, 1e-9);
  for (const std::int32_t period : {1, 2, 3, 4, 6}) CHECK(same(flat, 12, period));

  const Cluster gpus = preset("nvlink8", {64}).take();
  CHECK(!same(gpus, 64, 1));
  CHECK(!same(gpus, 64, 4));
  CHECK(same(gpus, 64, 8));
  CHECK(same(gpus, 64, 16));
  CHECK(same(gpus, 8, 1));  // inside one host all are alike

  Cluster racks = flat;
  racks.leaves = {.hosts = 4, .uplink_Bps = 1e9};
  CHECK(!same(racks, 12, 1));
  CHECK(!same(racks, 12, 2));  // keeps no leaf together
  CHECK(same(racks, 12, 4));
  racks.leaves.hosts = 0;
  CHECK(same(racks, 12, 1));  // nobody goes up

  Cluster bus = local({8});
  CHECK(!same(bus, 8, 1));  // all share it
  bus.within.through = Within::pairs;
  CHECK(same(bus, 8, 1));
  bus.cores_per_host = 2;
  CHECK(!same(bus, 8, 1));
  CHECK(!same(bus, 8, 2));
}
