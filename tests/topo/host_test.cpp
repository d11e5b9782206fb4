// SPDX-License-Identifier: Apache-2.0
#include "topo/host.h"

#include <catch2/catch.hpp>

#include "topo/files/host_json.h"
#include "topo/samples.h"

using namespace shoal::topo;
using namespace shoal::testing;

namespace {

Host load(const std::string& name) {
  auto host = load_host(sample(name));
  INFO(host.status().text());
  REQUIRE(host.is_ok());
  return host.take();
}

Distance between_gpus(const Host& host, std::size_t a, std::size_t b) {
  return distance(host, host.gpus[a].pci, host.gpus[a].numa, host.gpus[b].pci, host.gpus[b].numa);
}

}  // namespace

TEST_CASE("distance: one switch, one node, two nodes, unknown") {
  const Host station = load("workstation4.xml");
  CHECK(between_gpus(station, 0, 0) == Distance::same);
  CHECK(between_gpus(station, 0, 1) == Distance::pix);
  CHECK(between_gpus(station, 2, 3) == Distance::pix);
  CHECK(between_gpus(station, 1, 2) == Distance::phb);
  const Host nvswitch = load("nvswitch8.json");
  CHECK(between_gpus(nvswitch, 0, 3) == Distance::phb);
  CHECK(between_gpus(nvswitch, 3, 4) == Distance::sys);
  const Gpu& gpu = nvswitch.gpus[5];
  const RdmaDevice& nic = nvswitch.rdma[5];
  CHECK(distance(nvswitch, gpu.pci, gpu.numa, nic.pci, nic.numa) == Distance::pix);
  CHECK(distance(nvswitch, gpu.pci, gpu.numa, -1, std::nullopt) == Distance::unknown);
}

TEST_CASE("distance: switches behind switches are PXB") {
  Host host;
  for (int i = 0; i < 7; ++i) host.pci.push_back({.bus_id = "0000:0" + std::to_string(i) + ":00.0", .parent = i - 1});
  host.pci.push_back({.bus_id = "0000:0a:00.0", .parent = 0});
  REQUIRE(validate(host).is_ok());
  CHECK(distance(host, 6, std::nullopt, 7, std::nullopt) == Distance::pxb);
  CHECK(distance(host, 3, std::nullopt, 7, std::nullopt) == Distance::pix);
}

TEST_CASE("bandwidth: of PCI links as their generations code, of NVLinks by generation") {
  CHECK(pci_Bps({.speed_GTs = 8.0, .width = 16}).value() == Approx(15.754e9).epsilon(1e-3));
  CHECK(pci_Bps({.speed_GTs = 5.0, .width = 8}).value() == Approx(4e9));
  CHECK_FALSE(pci_Bps({.speed_GTs = 5.0}).has_value());
  CHECK(nvlink_Bps({.compute_capability = 90}) == 25e9);
  CHECK(nvlink_Bps({.compute_capability = 60}) == 20e9);
  CHECK(nvlink_Bps({.compute_capability = 100}) == 50e9);
}

TEST_CASE("a host that contradicts itself is refused, by place and number") {
  const Host good = load("nvswitch8.json");
  const auto error = [&](auto spoil) {
    Host host = good;
    spoil(host);
    return std::string(validate(host).text());
  };
  CHECK(error([](Host&) {}) == "success");
  CHECK(error([](Host& h) { h.pci[3].parent = 3; }) ==
        "pci[3] (0000:18:00.0): parent is 3: parents stand before their children, -1 is none");
  CHECK(error([](Host& h) { h.pci[4].bus_id = h.pci[1].bus_id; }) == "pci[4]: 0000:16:00.0 is there twice");
  CHECK(error([](Host& h) { h.gpus[2].pci = 49; }) == "gpus[2].pci is 49: there are 49 devices");
  CHECK(error([](Host& h) { h.rdma[1].numa = -1; }) == "rdma[1].numa is -1: a node's number, or left out where it is unknown");
  CHECK(error([](Host& h) { h.gpus[1].links[0].peer = 8; }) ==
        "gpus[1]: 18 links to GPU 8: at least one, to another of 8 GPUs or -1, a switch");
  CHECK(error([](Host& h) { h.gpus[1].links[0].peer = 1; }) ==
        "gpus[1]: 18 links to GPU 1: at least one, to another of 8 GPUs or -1, a switch");
  CHECK(error([](Host& h) { h.gpus[0].performance_ranks = {0}; }) ==
        "gpus[0].performance_ranks has 1 entries: one for each of 7 that it reaches, or none");
  CHECK(error([](Host& h) { h.gpus[1].performance_ranks = {0, 0, 0, 0, 0, 0, -1}; }) ==
        "gpus[1].performance_ranks has -1: 0 or more");
  CHECK(error([](Host& h) { h.gpus[0].reaches = {8}; }) == "gpus[0] reaches GPU 8: there are 8");
  CHECK(error([](Host& h) { h.nodes[1].number = 0; }) == "nodes[1].number is 0: a number from 0 on, each once");
  CHECK(error([](Host& h) { h.nodes[1].distances = {10}; }) == "nodes[1].distances: 1 of them, 2 nodes");
  CHECK(error([](Host& h) { h.ours = ProcessorSet({32}); }) == "ours is 32: the host has processors 0-31");
  CHECK(error([](Host& h) { h.interfaces[0].Mbps = 0; }) ==
        "interfaces[0].Mbps is 0: a number above 0, or left out where it is unknown");
  CHECK(error([](Host& h) { h.limits.cpu_quota = -1.5; }) ==
        "limits.cpu_quota is -1.5: a number above 0, or left out where it is unknown");
}
