// SPDX-License-Identifier: Apache-2.0
#include "topo/bound/job_graph.h"

#include <algorithm>
#include <map>

#include "topo/bound/bound.h"

namespace shoal::topo {
namespace {

constexpr std::size_t kMostRanks = 512;  // flows between all of them take a while

// One host's vertices and links.
class Builder {
 public:
  Builder(Job& job, const Host& host, int number, bool several, int network)
      : job_(job), host_(host), prefix_(several ? fmt::format("host {} ", number) : ""), number_(number), network_(network) {}

  void build(int ranks_without_gpus) {
    for (const NumaNode& node : host_.nodes) nodes_.push_back(add(fmt::format("node {}", node.number)));
    middle_ = nodes_.size() == 1 ? nodes_.front() : add(nodes_.empty() ? "memory" : "between nodes");
    for (const int node : nodes_)
      if (node != middle_) job_.graph.join(node, middle_, Graph::kUnlimited);
    devices();
    gpus();
    if (host_.gpus.empty())
      for (int r = 0; r < ranks_without_gpus; ++r) {
        const int node = nodes_.empty() ? -1 : r % static_cast<int>(nodes_.size());
        const int vertex = add(fmt::format("rank {}", r));
        job_.graph.join(vertex, node < 0 ? middle_ : nodes_[static_cast<std::size_t>(node)], Graph::kUnlimited);
        rank(vertex, node, -1);
      }
    network();
  }

 private:
  int add(const std::string& name) { return job_.graph.add(prefix_ + name); }
  int place(std::optional<int> numa) const {
    const int index = node_index(host_, numa);
    return index < 0 ? middle_ : nodes_[static_cast<std::size_t>(index)];
  }

  // Group numbers that no other host has.
  void rank(int vertex, int node, int pci) {
    constexpr int kStride = 1 << 20;
    const std::vector<int> path = pci_path(host_, pci);
    const int above = path.size() > 1 ? path.front() : pci;
    job_.graph.ranks.push_back(vertex);
    job_.host_of_rank.push_back(number_);
    job_.groups[0].push_back(number_);
    job_.groups[1].push_back(number_ * 1024 + node + 1);
    job_.groups[2].push_back(pci < 0 ? number_ * 1024 + node + 1 : kStride + number_ * 65536 + above);
  }

  void devices() {
    for (const PciDevice& device : host_.pci) {
      const int vertex = add(device.bus_id);
      const int above = device.parent < 0 ? place(device.numa) : pci_[static_cast<std::size_t>(device.parent)];
      job_.graph.join(vertex, above, pci_Bps(device).value_or(Graph::kUnlimited));
      pci_.push_back(vertex);
    }
  }

  void gpus() {
    std::vector<int> vertices;
    int nvswitch = -1;
    for (const Gpu& gpu : host_.gpus) {
      const int vertex = add(fmt::format("GPU {}", gpu.number));
      job_.graph.join(vertex, gpu.pci < 0 ? place(gpu.numa) : pci_[static_cast<std::size_t>(gpu.pci)], Graph::kUnlimited);
      rank(vertex, node_index(host_, gpu.numa), gpu.pci);
      vertices.push_back(vertex);
    }
    for (std::size_t g = 0; g < host_.gpus.size(); ++g)
      for (const GpuLink& link : host_.gpus[g].links) {
        const double Bps = link.links * nvlink_Bps(host_.gpus[g]);
        if (link.peer != GpuLink::kSwitch) {
          job_.graph.edges.push_back(
              {vertices[g], vertices[static_cast<std::size_t>(link.peer)], Bps});  // the peer has the way back
          continue;
        }
        if (nvswitch < 0) nvswitch = add("NVSwitch");
        job_.graph.join(vertices[g], nvswitch, Bps);
      }
  }

  void network() {
    bool found = false;
    const auto join = [&](int pci, std::optional<int> numa, const std::string& name, std::int64_t Mbps) {
      const int vertex = add(name);
      job_.graph.join(vertex, pci < 0 ? place(numa) : pci_[static_cast<std::size_t>(pci)], Graph::kUnlimited);
      job_.graph.join(vertex, network_, static_cast<double>(Mbps) * 1e6 / 8);
      found = true;
    };
    for (const RdmaDevice& device : host_.rdma)
      for (const RdmaPort& port : device.ports)
        if (port.Mbps && (port.state.empty() || port.state == "ACTIVE"))
          join(device.pci, device.numa, fmt::format("{} port {}", device.name, port.number), *port.Mbps);
    if (found) return;
    for (const Interface& each : host_.interfaces)
      if (!each.loopback && each.Mbps && each.up.value_or(true)) join(each.pci, each.numa, each.name, *each.Mbps);
    if (!found) job_.graph.join(middle_, network_, Graph::kUnlimited);  // there is some way, of which nothing is known
  }

  Job& job_;
  const Host& host_;
  std::string prefix_;
  int number_, network_, middle_ = 0;
  std::vector<int> nodes_, pci_;
};

double to_network(const Host& host) {
  double Bps = 0;
  for (const RdmaDevice& device : host.rdma)
    for (const RdmaPort& port : device.ports)
      if (port.state.empty() || port.state == "ACTIVE") Bps += static_cast<double>(port.Mbps.value_or(0)) * 1e6 / 8;
  if (Bps > 0) return Bps;
  for (const Interface& each : host.interfaces)
    if (!each.loopback && each.up.value_or(true)) Bps += static_cast<double>(each.Mbps.value_or(0)) * 1e6 / 8;
  return Bps > 0 ? Bps : plan::kUnlimited;
}

bool has_nvswitch(const Host& host) {
  return !host.gpus.empty() && std::all_of(host.gpus.begin(), host.gpus.end(), [](const Gpu& gpu) {
    return std::any_of(gpu.links.begin(), gpu.links.end(), [](const GpuLink& link) { return link.peer == GpuLink::kSwitch; });
  });
}

}  // namespace

Result<Job> job_on(std::span<const Host> hosts, int ranks_without_gpus) {
  Job job{.graph = {}, .groups = std::vector<std::vector<int>>(3), .host_of_rank = {}};
  const int network = job.graph.add("network");
  for (std::size_t h = 0; h < hosts.size(); ++h)
    Builder(job, hosts[h], static_cast<int>(h), hosts.size() > 1, network).build(ranks_without_gpus);
  if (job.graph.ranks.empty())
    return fail(Code::invalid_argument, "no ranks: the hosts have no GPUs, and no number of ranks is given");
  if (job.graph.ranks.size() > kMostRanks)
    return fail(Code::invalid_argument, "{} ranks: at most {}", job.graph.ranks.size(), kMostRanks);
  return job;
}

namespace {

// What a port of each rank to one switch must have for that to be no better than the host: between the two ranks that have the
// narrowest way, and when all gather from all.
double port_Bps(const Graph& graph, const std::vector<int>& ranks) {
  double Bps = plan::kUnlimited;
  for (const int other : ranks)
    if (other != ranks.front()) Bps = std::min(Bps, max_flow(graph, {ranks.front()}, {other}).Bps);
  Graph own = graph;
  own.ranks = ranks;
  const double seconds = bound_of(own, plan::Collective::all_gather, 1, 0, {}).seconds;
  return seconds > 0 ? std::min(Bps, static_cast<double>(ranks.size() - 1) / seconds) : Bps;
}

}  // namespace

plan::Cluster cluster_of(const Job& job, std::span<const Host> hosts) {
  plan::Cluster cluster;
  cluster.name = "topology";
  cluster.hosts = static_cast<std::int32_t>(hosts.size());
  std::map<int, std::vector<int>> ranks_of;
  for (std::size_t r = 0; r < job.graph.ranks.size(); ++r) ranks_of[job.host_of_rank[r]].push_back(job.graph.ranks[r]);
  std::size_t most = 0, least = job.graph.ranks.size();
  double within = plan::kUnlimited, network = plan::kUnlimited;
  for (const auto& [number, ranks] : ranks_of) {
    most = std::max(most, ranks.size());
    least = std::min(least, ranks.size());
    network = std::min(network, to_network(hosts[static_cast<std::size_t>(number)]));
    within = std::min(within, port_Bps(job.graph, ranks));
  }
  const bool switched = std::all_of(hosts.begin(), hosts.end(), has_nvswitch);
  const bool gpus = std::any_of(hosts.begin(), hosts.end(), [](const Host& host) { return !host.gpus.empty(); });
  if (most == least)
    cluster.ranks_per_host = static_cast<std::int32_t>(most);
  else
    cluster.host_of_rank.assign(job.host_of_rank.begin(), job.host_of_rank.end());
  cluster.overhead_s = gpus ? 0.5e-6 : 0.1e-6;
  cluster.reduce_Bps = gpus ? 1e12 : 8e9;
  cluster.copy_Bps = gpus ? 1.5e12 : 10e9;
  // Ranks without a switch of their own share what is between them; memory of the host where nothing is known.
  const double latency = gpus ? 1.5e-6 : 0.3e-6;
  if (within >= Graph::kUnlimited) within = 20e9;
  cluster.within = {.through = switched || gpus ? plan::Within::switched : plan::Within::bus,
                    .latency_s = latency,
                    .bandwidth_Bps = within,
                    .credit_s = latency};
  std::size_t nics = most;
  for (const Host& host : hosts) {
    std::size_t ports = 0;
    for (const RdmaDevice& device : host.rdma) ports += device.ports.size();
    nics = std::min(nics, std::max<std::size_t>(1, ports));
  }
  cluster.nics.per_host = static_cast<std::int32_t>(nics);
  cluster.nics.latency_s = cluster.nics.credit_s = gpus ? 5e-6 : 20e-6;
  cluster.nics.out_Bps = cluster.nics.in_Bps = network / static_cast<double>(nics);
  return cluster;
}

}  // namespace shoal::topo
