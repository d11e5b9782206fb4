// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other of their hosts, and what plans are priced with because of it.
#include "comm/host_view.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "comm/selection.h"

namespace shoal::comm {
namespace {

std::string sample(const std::string& name) { return std::string(SHOAL_SAMPLES "/") + name; }

std::int64_t Mbps_in(const std::string& name) {
  const Result<HostView> view = look_at_host({0}, {.file = sample(name), .file_variable = "NCCL_TOPO_FILE"});
  REQUIRE(view.is_ok());
  return view->network_Mbps;
}

TEST_CASE("host view: the fastest interface, or the ports of a rank together; down, loopback and unknown do not count") {
  topo::Host host;
  CHECK(view_of(host).network_Mbps == 0);
  host.interfaces = {{.name = "eth0", .up = true, .Mbps = 1000},
                     {.name = "eth1", .up = false, .Mbps = 25000},
                     {.name = "lo", .up = true, .loopback = true, .Mbps = 90000},
                     {.name = "eth2", .Mbps = 10000},
                     {.name = "eth3", .up = true}};
  CHECK(view_of(host).network_Mbps == 10000);
  const auto port = [](int number, const char* state, std::optional<std::int64_t> Mbps) {
    return topo::RdmaPort{.number = number, .state = state, .Mbps = Mbps};
  };
  host.rdma = {{.name = "mlx5_0", .ports = {port(1, "ACTIVE", 4000), port(2, "DOWN", 400000)}},
               {.name = "mlx5_1", .ports = {port(1, "", 3000), port(2, "ACTIVE", std::nullopt)}}};
  CHECK(view_of(host).network_Mbps == 10000);
  host.rdma.push_back({.name = "mlx5_2", .ports = {port(1, "ACTIVE", 4000), port(2, "ACTIVE", 2000), port(3, "ACTIVE", 1000)}});
  CHECK(view_of(host).network_Mbps == 13000);  // four ports of a rank
}

TEST_CASE("host view: from files of either kind") {
  CHECK(Mbps_in("mixed_a.xml") == 200000);
  CHECK(Mbps_in("mixed_b.json") == 10000);
  CHECK(Mbps_in("cloud_vm.json") == 0);
}

TEST_CASE("FC-40: a bad topology file is refused by variable, file, line and reason") {
  for (const auto& [name, reason] : std::vector<std::pair<std::string, std::string>>{{"bad/truncated.xml", ": line "},
                                                                                     {"bad/unknown_tag.xml", ": line "},
                                                                                     {"bad/twice.xml", ": line "},
                                                                                     {"bad/no_such_bus_id.xml", ": line "},
                                                                                     {"bad/cycle.json", ": pci[0]"},
                                                                                     {"nosuch.xml", ": No such file"}}) {
    const Result<HostView> view = look_at_host({3}, {.file = sample(name), .file_variable = "SHOAL_TOPO_FILE"});
    REQUIRE_FALSE(view.is_ok());
    CHECK_THAT(std::string(view.status().text()), Catch::StartsWith("SHOAL_TOPO_FILE=" + sample(name) + reason));
  }
}

TEST_CASE("host view: the rank that is to writes the file down, and a file that cannot be written is an error") {
  const std::string path = "/tmp/shoal-host-view-" + std::to_string(::getpid()) + ".xml";
  TopoOptions options{.file = sample("mixed_a.xml"), .dump_file = path, .dump_variable = "NCCL_TOPO_DUMP_FILE", .dump_rank = 2};
  CHECK(look_at_host({0}, options).is_ok());
  CHECK_FALSE(std::ifstream(path).is_open());
  CHECK(look_at_host({2}, options).is_ok());
  const Result<HostView> again = look_at_host({0}, {.file = path});
  ::unlink(path.c_str());
  REQUIRE(again.is_ok());
  CHECK(again->network_Mbps == 200000);
  options.dump_file = "/nosuch/folder.xml";
  const Result<HostView> failed = look_at_host({2}, options);
  REQUIRE_FALSE(failed.is_ok());
  CHECK(failed.status().text() == "NCCL_TOPO_DUMP_FILE='/nosuch/folder.xml': cannot be written: No such file or directory (2)");
}

TEST_CASE("host views travel as text; others are refused by rank") {
  const std::vector<std::string> texts = {encode(HostView{}), encode(HostView{.network_Mbps = 25000, .node = 3})};
  const auto views = decode_host_views(texts);
  REQUIRE(views.is_ok());
  CHECK(*views == std::vector<HostView>{{}, {.network_Mbps = 25000, .node = 3}});
  for (const char* bad : {"", "network_Mbps", "network_Mbps=", "network_Mbps=-1 node=0", "network_Mbps=1x node=0",
                          "network_Mbps=9999999999 node=0", "network_Mbps=1", "network_Mbps=1 node=", "network_Mbps=1 node=-2",
                          "network_Mbps=1 node=65536", "network_Mbps=1 node=0 ", "x"}) {
    INFO(bad);
    const std::vector<std::string> with = {texts[0], bad};
    const auto refused = decode_host_views(with);
    REQUIRE_FALSE(refused.is_ok());
    CHECK(refused.status().code() == Code::invalid_usage);
    CHECK_THAT(std::string(refused.status().text()), Catch::StartsWith("rank 1 told of its host"));
  }
}

TEST_CASE("host view: the NUMA node that has all of a process's processors; none where several do, or where that is not known") {
  topo::Host host;
  CHECK(view_of(host).node == -1);
  host.nodes = {{.number = 0, .processors = topo::ProcessorSet({0, 1, 4, 5})},
                {.number = 2, .processors = topo::ProcessorSet({2, 3})}};
  CHECK(view_of(host).node == -1);
  host.ours = topo::ProcessorSet({2, 3});
  CHECK(view_of(host).node == 2);
  host.ours = topo::ProcessorSet({1, 5});
  CHECK(view_of(host).node == 0);
  host.ours = topo::ProcessorSet({1, 2});
  CHECK(view_of(host).node == -1);
}

TEST_CASE("situation: NUMA nodes are borders where one host's ranks sit on several, as many on each, one node after the other") {
  const auto node_of = [](const std::vector<int>& nodes, std::int32_t hosts = 1) {
    std::vector<link::PeerIdentity> peers(nodes.size());
    std::vector<HostView> views(nodes.size());
    for (std::size_t r = 0; r < nodes.size(); ++r) {
      peers[r] = {.rank = {static_cast<std::int32_t>(r)},
                  .host_id = std::to_string(r * static_cast<std::size_t>(hosts) / nodes.size())};
      views[r].node = nodes[r];
    }
    return situation_of(peers, Settings{}, views);
  };
  CHECK(node_of({0, 0, 1, 1}).node == 2);
  CHECK(node_of({0, 0, 1, 1}).close() == 2);
  CHECK(node_of({0, 0, 1, 1}).group == 4);
  CHECK(node_of({3, 3, 3, 1, 1, 1, 0, 0, 0}).node == 3);
  for (const std::vector<int>& none : std::vector<std::vector<int>>{
           {0, 0, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 1, 1}, {0, 0, 1, -1}, {-1, -1, -1, -1}, {0, 0, 1, 1, 0}, {0, 0, 0, 1}, {0, 1}}) {
    CAPTURE(none);
    CHECK(node_of(none).node == 0);
    CHECK(node_of(none).close() == static_cast<std::int32_t>(none.size()));
  }
  CHECK(node_of({0, 0, 1, 1, 0, 0, 1, 1}, 2).node == 0);  // hosts are the thinner border
  CHECK(node_of({0, 0, 1, 1, 0, 0, 1, 1}, 2).close() == 4);
  CHECK(smaller(node_of({0, 0, 1, 1}), 2).close() == 2);
  CHECK(smaller(node_of({0, 0, 1, 1}), 2).node == 0);
}

TEST_CASE("FC-61: the slowest host that says so is what all plan by") {
  std::vector<link::PeerIdentity> peers(3);
  for (std::int32_t r = 0; r < 3; ++r)
    peers[static_cast<std::size_t>(r)] = {.rank = {r}, .host_id = std::string(1, static_cast<char>('a' + r))};
  const std::vector<HostView> unlike = {{.network_Mbps = 100000}, {}, {.network_Mbps = 8000}};
  const Situation known = situation_of(peers, Settings{}, unlike), unknown = situation_of(peers, Settings{});
  CHECK(known.network_Bps == 1e9);
  CHECK(cluster_of(known, Settings{}).nics.out_Bps == 1e9);
  CHECK(unknown.network_Bps == 0);
  CHECK(cluster_of(unknown, Settings{}).nics.out_Bps == 1.25e9);
  Settings fast_there;
  fast_there.network = {
      .latency_s = 3e-6, .overhead_s = 1e-6, .bandwidth_Bps = 25e9};  // of rank 0's host, which is not the slowest
  CHECK(cluster_of(known, fast_there).nics.out_Bps == 1e9);
  CHECK(cluster_of(unknown, fast_there).nics.out_Bps == 25e9);
  Settings measured;
  measured.calibration = Calibration{.between = {.bandwidth_Bps = 7e8}};
  CHECK(cluster_of(known, measured).nics.out_Bps == 7e8);
}

}  // namespace
}  // namespace shoal::comm
