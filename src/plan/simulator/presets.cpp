// SPDX-License-Identifier: Apache-2.0
// Clusters known by name. The numbers are round figures of the kind of machine, for comparing algorithms; whoever has a machine
// measures it and writes a file.
#include <algorithm>

#include "plan/simulator/cluster.h"

namespace shoal::plan {
namespace {

std::int32_t hosts_for(World world, std::int32_t per_host) { return (world.value + per_host - 1) / per_host; }

// Eight GPUs on a switch, a 400 Gb/s NIC for each.
Cluster nvlink8(World world) {
  Cluster c;
  c.name = "nvlink8";
  c.ranks_per_host = 8;
  c.hosts = hosts_for(world, 8);
  c.overhead_s = 0.5e-6;
  c.reduce_Bps = 1e12;
  c.copy_Bps = 1.5e12;
  c.within = {.through = Within::switched, .latency_s = 1.5e-6, .bandwidth_Bps = 450e9, .credit_s = 1.5e-6};
  c.nics = {.per_host = 8, .of_local = {}, .latency_s = 5e-6, .out_Bps = 50e9, .in_Bps = 50e9, .credit_s = 5e-6};
  return c;
}

// The same hosts, the i-th NICs of all of them on one rail; from rail to rail over a spine that is never full.
Cluster rail1024(World world) {
  Cluster c = nvlink8(world);
  c.name = "rail1024";
  c.leaves = {.hosts = 0, .by_rail = true, .latency_s = 2e-6, .uplink_Bps = kUnlimited};
  return c;
}

Cluster ethernet25(World world) {
  Cluster c;
  c.name = "ethernet25";
  c.hosts = world.value;
  c.overhead_s = 2e-6;
  c.reduce_Bps = 8e9;
  c.copy_Bps = 10e9;
  c.nics = {.latency_s = 20e-6, .out_Bps = 3.125e9, .in_Bps = 3.125e9, .credit_s = 20e-6};
  return c;
}

// Machines at home: 250 Mb/s down, 40 Mb/s up.
Cluster home(World world) {
  Cluster c = ethernet25(world);
  c.name = "home";
  c.nics = {.latency_s = 15e-3, .out_Bps = 5e6, .in_Bps = 31.25e6, .credit_s = 15e-3};
  return c;
}

// Two sites on two continents, half of the ranks in each; 10 Gb/s for a machine, and for the line between the sites.
Cluster wan(World world) {
  Cluster c = ethernet25(world);
  c.name = "wan";
  c.nics = {.latency_s = 50e-6, .out_Bps = 1.25e9, .in_Bps = 1.25e9, .credit_s = 50e-6};
  c.leaves = {.hosts = (world.value + 1) / 2, .latency_s = 40e-3, .uplink_Bps = 1.25e9};
  return c;
}

Cluster local_defaults(World world) { return local(world); }

}  // namespace

Cluster uniform(World world, double alpha_s, double beta_sB, double gamma_sB) {
  Cluster c;
  c.name = "uniform";
  c.hosts = world.value;
  const auto bandwidth = [](double seconds) { return seconds == 0 ? kUnlimited : 1 / seconds; };
  c.reduce_Bps = bandwidth(gamma_sB);
  c.nics = {.latency_s = alpha_s, .out_Bps = bandwidth(beta_sB), .in_Bps = bandwidth(beta_sB)};
  return c;
}

Cluster local(World world, const LocalHost& host) {
  Cluster c;
  c.name = "local";
  c.ranks_per_host = world.value;
  c.cores_per_host = host.cores;
  c.overhead_s = host.overhead_s;
  c.reduce_Bps = host.reduce_Bps;
  c.copy_Bps = host.copy_Bps;
  c.within = {.through = Within::bus, .latency_s = host.latency_s, .bandwidth_Bps = host.memory_Bps, .credit_s = host.latency_s};
  return c;
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {"nvlink8", "hosts of 8 GPUs on an NVLink switch, a 400 Gb/s NIC for each GPU", nvlink8},
      {"rail1024", "the same hosts in a rail-optimised network (1,024 GPUs: 128 hosts)", rail1024},
      {"ethernet25", "commodity hosts, one rank each, 25 Gb/s Ethernet", ethernet25},
      {"home", "home broadband: 250 Mb/s down, 40 Mb/s up, 15 ms", home},
      {"wan", "two sites on two continents, 40 ms and 10 Gb/s between them", wan},
      {"local", "one host, messages through memory", local_defaults},
  };
  return all;
}

Result<Cluster> preset(std::string_view name, World world) {
  if (world.value < 1 || world.value > 1 << 20)
    return fail(Code::invalid_argument, "a cluster for {} ranks: 1 to {}", world.value, 1 << 20);
  std::string names;
  for (const Preset& each : presets()) {
    if (each.name == name) return each.make(world);
    names += names.empty() ? "" : ", ";
    names += each.name;
  }
  return fail(Code::invalid_argument, "no cluster is named \"{}\": {}, or a file's path", name, names);
}

}  // namespace shoal::plan
