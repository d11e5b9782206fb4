// SPDX-License-Identifier: Apache-2.0
// Bounds on graphs small enough to know the answer, and on the sample hosts.
#include "topo/bound/bound.h"

#include <catch2/catch.hpp>

#include "topo/bound/job_graph.h"
#include "topo/files/host_json.h"
#include "topo/samples.h"

using namespace shoal::topo;
using namespace shoal::testing;
using shoal::plan::Collective;

namespace {

// Ranks on one switch, a link each.
Graph star(std::initializer_list<double> links) {
  Graph graph;
  const int middle = graph.add("switch");
  for (const double Bps : links) {
    graph.ranks.push_back(graph.add("rank " + std::to_string(graph.ranks.size())));
    graph.join(graph.ranks.back(), middle, Bps);
  }
  return graph;
}

// Ranks joined to the next one only, in one direction.
Graph one_way_ring(int world, double Bps) {
  Graph graph;
  for (int r = 0; r < world; ++r) graph.ranks.push_back(graph.add("rank " + std::to_string(r)));
  for (int r = 0; r < world; ++r) graph.edges.push_back({r, (r + 1) % world, Bps});
  return graph;
}

double seconds(const Graph& graph, Collective collective, double bytes, const std::vector<std::vector<int>>& groups = {},
               int root = 0) {
  return bound_of(graph, collective, bytes, root, groups).seconds;
}

std::vector<Host> load(std::initializer_list<const char*> names) {
  std::vector<Host> hosts;
  for (const char* name : names) {
    auto host = load_host(sample(name));
    REQUIRE(host.is_ok());
    hosts.push_back(host.take());
  }
  return hosts;
}

}  // namespace

TEST_CASE("flow: through the narrowest cut, which is named") {
  Graph graph;
  const int a = graph.add("a"), b = graph.add("b"), c = graph.add("c"), d = graph.add("d");
  graph.edges = {{a, b, 3}, {a, c, 2}, {b, d, 2}, {c, d, 3}, {b, c, 1}};
  const Flow flow = max_flow(graph, {a}, {d});
  CHECK(flow.Bps == 5);
  CHECK(max_flow(graph, {d}, {a}).Bps == 0);
  CHECK(max_flow(graph.reversed(), {d}, {a}).Bps == 5);
  CHECK(max_flow(graph, {a, b}, {d}).Bps == 5);
  CHECK(max_flow(graph, {a, b}, 1.5, {d}).Bps == 3);
  CHECK(max_flow(graph, {c}, {d}).source_side == std::vector<bool>{false, false, true, false});
}

TEST_CASE("bound: on a switch, the formulas of the literature") {
  const Graph graph = star({10, 10, 10, 10});
  CHECK(seconds(graph, Collective::all_reduce, 100) == Approx(2 * 3.0 / 4 * 100 / 10));
  CHECK(seconds(graph, Collective::all_gather, 25) == Approx(3 * 25.0 / 10));
  CHECK(seconds(graph, Collective::reduce_scatter, 25) == Approx(3 * 25.0 / 10));
  CHECK(seconds(graph, Collective::broadcast, 100) == Approx(10));
  CHECK(seconds(graph, Collective::reduce, 100) == Approx(10));
  CHECK(seconds(graph, Collective::all_to_all, 25) == Approx(3 * 25.0 / 10));
  CHECK(seconds(graph, Collective::gather, 25) == Approx(3 * 25.0 / 10));
  CHECK(seconds(graph, Collective::scatter, 25, {}, 2) == Approx(3 * 25.0 / 10));
  CHECK(seconds(graph, Collective::barrier, 0) == 0);
}

TEST_CASE("bound: one slow link holds up all who need it") {
  const Graph graph = star({10, 10, 10, 1});
  const Bound broadcast = bound_of(graph, Collective::broadcast, 100, 0, {});
  CHECK(broadcast.seconds == Approx(100));
  CHECK(broadcast.cut == "switch to rank 3 (1e-09 GB/s)");
  CHECK(seconds(graph, Collective::all_reduce, 100) == Approx(100));
  CHECK(seconds(graph, Collective::all_gather, 25) == Approx(75));
  CHECK(seconds(graph, Collective::gather, 25) == Approx(25));  // the last rank's own block
  CHECK(seconds(graph, Collective::gather, 25, {}, 3) == Approx(75));
}

TEST_CASE("bound: a ring of one direction, and what turning it round changes nothing of") {
  const Graph graph = one_way_ring(4, 5);
  CHECK(seconds(graph, Collective::all_gather, 10) == Approx(3 * 10.0 / 5));
  CHECK(seconds(graph, Collective::reduce_scatter, 10) == Approx(3 * 10.0 / 5));
  CHECK(seconds(graph, Collective::all_reduce, 40) == Approx(2 * 3.0 / 4 * 40 / 5));
  CHECK(seconds(graph, Collective::broadcast, 40) == Approx(8));
}

TEST_CASE("bound: two switches with a thin wire between them") {
  Graph graph;
  const int left = graph.add("left"), right = graph.add("right");
  for (int r = 0; r < 4; ++r) {
    graph.ranks.push_back(graph.add("rank " + std::to_string(r)));
    graph.join(graph.ranks.back(), r < 2 ? left : right, 100);
  }
  graph.join(left, right, 1);
  const std::vector<std::vector<int>> groups = {{0, 0, 1, 1}};
  CHECK(seconds(graph, Collective::all_gather, 10) == Approx(2 * 10.0 / 1));  // both blocks of one side
  CHECK(seconds(graph, Collective::all_reduce, 100, groups) == Approx(100));
  CHECK(seconds(graph, Collective::all_to_all, 10, groups) == Approx(4 * 10.0));
  CHECK(seconds(graph, Collective::gather, 10, groups) == Approx(20));
}

TEST_CASE("bound: links of unknown bandwidth are no limit") {
  const Graph graph = star({Graph::kUnlimited, Graph::kUnlimited, Graph::kUnlimited});
  for (const Collective each : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::broadcast,
                                Collective::all_to_all, Collective::gather})
    CHECK(seconds(graph, each, 1e9) == 0);
  CHECK(seconds(star({5}), Collective::all_reduce, 100) == 0);  // alone
}

TEST_CASE("job: eight GPUs on NVSwitches: NVLink and PCI together") {
  const auto hosts = load({"nvswitch8.json"});
  const auto job = job_on(hosts, 2);
  REQUIRE(job.is_ok());
  REQUIRE(job->graph.ranks.size() == 8);
  const double port = 18 * 25e9 + 32e9 / 8 * 16 * 128 / 130;
  CHECK(seconds(job->graph, Collective::all_gather, 1e9, job->groups) == Approx(7e9 / port));
  CHECK(seconds(job->graph, Collective::all_reduce, 8e9, job->groups) == Approx(14e9 / port));
  const auto cluster = cluster_of(*job, hosts);
  CHECK(shoal::plan::validate(cluster).is_ok());
  CHECK(cluster.within.through == shoal::plan::Within::switched);
  CHECK(cluster.within.bandwidth_Bps == Approx(port));
  CHECK(cluster.ranks_per_host == 8);
}

TEST_CASE("job: two unlike hosts: the slow one's network limits, and ranks are counted host by host") {
  const auto hosts = load({"mixed_a.xml", "mixed_b.json"});
  const auto job = job_on(hosts, 2);
  REQUIRE(job.is_ok());
  CHECK(job->host_of_rank == std::vector<int>{0, 0, 0, 1, 1});
  const Bound bound = bound_of(job->graph, Collective::all_reduce, 1.25e9, 0, job->groups);
  CHECK(bound.seconds == Approx(1));
  CHECK(bound.cut.find("host 1 enp1s0") != std::string::npos);
  const auto cluster = cluster_of(*job, hosts);
  CHECK(cluster.host_of_rank == std::vector<std::int32_t>{0, 0, 0, 1, 1});
  CHECK(cluster.nics.out_Bps == Approx(1.25e9));
}

TEST_CASE("job: hosts without GPUs need a number of ranks") {
  const auto hosts = load({"dual_socket.json"});
  CHECK(job_on(hosts, 4)->graph.ranks.size() == 4);
  CHECK(job_on(hosts, 0).status().text() == "no ranks: the hosts have no GPUs, and no number of ranks is given");
  CHECK(job_on(hosts, 513).status().text() == "513 ranks: at most 512");
}
