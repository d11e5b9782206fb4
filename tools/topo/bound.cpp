// SPDX-License-Identifier: Apache-2.0
// shoal-topo bound: what the links of a job can do at most, and how near to it the best plan comes.
#include "topo/bound/bound.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "algorithms/algorithms.h"
#include "plan/simulator/simulator.h"
#include "tools/topo/arguments.h"
#include "tools/topo/words.h"
#include "topo/bound/job_graph.h"
#include "topo/files/host_json.h"

namespace shoal::topo_tool {
namespace {

using plan::Collective;

struct Row {
  Collective collective = Collective::all_reduce;
  topo::Bound bound;
  std::string_view algorithm;  // "": none can
  double seconds = 0;          // predicted, of the quickest
};

// As nccl-tests have it: busbw = bytes / seconds * this.
double bus_factor(Collective collective, double world) {
  if (collective == Collective::all_reduce) return 2 * (world - 1) / world;
  return plan::in_blocks(collective) ? (world - 1) / world : 1;
}

// Seconds of one algorithm on the cluster; nothing where it cannot run there.
std::optional<double> seconds_of(const algorithms::Algorithm& algorithm, World world, const plan::Cluster& cluster,
                                 std::uint64_t bytes) {
  const std::int32_t group = cluster.host_of_rank.empty() && cluster.ranks_per_host > 1 ? cluster.ranks_per_host : 0;
  std::vector<plan::Plan> plans;
  for (std::int32_t rank = 0; rank < world.value; ++rank) {
    plans.push_back(
        algorithm.build({.collective = algorithm.collective, .world = world, .rank = {rank}, .root = {}, .group = group}));
    if (!plans.back().refusal.empty()) return std::nullopt;
    if (plans.back().shared > 0 && cluster.hosts > 1) return std::nullopt;  // ranks read each other's memory
  }
  const Result<double> priced =
      plan::price(plans, cluster, {.bytes = {bytes}, .slice = {std::uint64_t{1} << 20}, .top = 0, .path_steps = 0});
  return priced.is_ok() ? std::optional(*priced) : std::nullopt;
}

Row row_of(Collective collective, const topo::Job& job, const plan::Cluster& cluster, std::uint64_t total) {
  const World world{static_cast<std::int32_t>(job.graph.ranks.size())};
  const std::uint64_t p = static_cast<std::uint64_t>(world.value);
  const std::uint64_t bytes = plan::in_blocks(collective) ? std::max<std::uint64_t>(4, total / p / 4 * 4) : total / 4 * 4;
  Row row{.collective = collective, .bound = topo::bound_of(job.graph, collective, static_cast<double>(bytes), 0, job.groups)};
  for (const algorithms::Algorithm& each : algorithms::all()) {
    if (each.collective != collective) continue;
    const std::optional<double> seconds = seconds_of(each, world, cluster, bytes);
    if (!seconds || (!row.algorithm.empty() && *seconds >= row.seconds)) continue;
    row.algorithm = each.name;
    row.seconds = *seconds;
  }
  // The simulator's cluster is simpler than the graph: a rank's ways to its host and to the network are two there, and may be
  // one.
  row.seconds = std::max(row.seconds, row.bound.seconds);
  return row;
}

void print(const std::vector<Row>& rows, double total, double world) {
  fmt::print("{:15} {:>12} {:>12}  {:24} {:>12} {:>9}  {}\n", "collective", "at least", "busbw", "best plan", "predicted",
             "of bound", "what limits");
  for (const Row& row : rows) {
    const double factor = bus_factor(row.collective, world);
    const bool known = row.bound.seconds > 0;
    fmt::print("{:15} {:>12} {:>12}  {:24} {:>12} {:>9}  {}\n", plan::name_of(row.collective),
               known ? fmt::format("{:.4g} ms", row.bound.seconds * 1e3) : "unknown",
               known ? fmt::format("{:.4g} GB/s", total * factor / row.bound.seconds / 1e9) : "", row.algorithm,
               row.algorithm.empty() ? "" : fmt::format("{:.4g} ms", row.seconds * 1e3),
               known && row.seconds > 0 ? fmt::format("{:.0f} %", 100 * row.bound.seconds / row.seconds) : "", row.bound.cut);
  }
}

void print_json(const std::vector<Row>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json each = {{"collective", plan::name_of(row.collective)}};
    if (row.bound.seconds > 0) {
      each["bound_s"] = row.bound.seconds;
      each["cut"] = row.bound.cut;
    }
    if (!row.algorithm.empty()) {
      each["algorithm"] = row.algorithm;
      each["predicted_s"] = row.seconds;
    }
    list.push_back(std::move(each));
  }
  fmt::print("{}\n", list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

Ending bound(const Words& words) {
  std::vector<std::string> files;
  int ranks = 0, copies = 1;
  std::uint64_t bytes = std::uint64_t{256} << 20;
  bool json = false;
  cli::CommandLine line = command_line(
      "bound", "the least time of each collective over a job's links, and how near the best plan comes.", "[FILE...] [OPTIONS]");
  line.app().add_option("FILE", files, "The job's hosts, a file each; else NCCL_TOPO_FILE's, else this machine");
  line.integer("-n,--ranks", ranks, 1, "Ranks on a host without GPUs; else one a NUMA node, at least two", 512);
  line.integer("--hosts", copies, 1, "So many hosts like the one given", 64);
  line.size("-b,--bytes", bytes, "Of the vector; or of all blocks of a rank together");
  line.flag("--json", json, "As JSON, in seconds");
  if (const auto ending = parse(line, words)) return *ending;
  if (copies > 1 && files.size() > 1) return {kUsage, fmt::format("--hosts {}: not together with several files", copies)};
  if (bytes < 4) return {kUsage, fmt::format("-b/--bytes {}: must be at least an element of 4 bytes", bytes)};

  std::vector<topo::Host> hosts;
  for (const std::string& file : files) {
    Result<topo::Host> host = topo::load_host(file);
    if (!host.is_ok()) return usage(host.status());
    hosts.push_back(host.take());
  }
  if (hosts.empty()) {
    Result<topo::Host> host = this_host();
    if (!host.is_ok()) return usage(host.status());
    hosts.push_back(host.take());
  }
  hosts.resize(hosts.size() + static_cast<std::size_t>(copies) - 1, hosts.front());
  if (ranks == 0) ranks = std::max(2, static_cast<int>(hosts.front().nodes.size()));
  const Result<topo::Job> job = topo::job_on(hosts, ranks);
  if (!job.is_ok()) return usage(job.status());
  const plan::Cluster cluster = topo::cluster_of(*job, hosts);
  if (Status s = plan::validate(cluster); !s.is_ok()) return usage(s);

  std::vector<Row> rows;
  for (const Collective each : {Collective::all_reduce, Collective::reduce, Collective::broadcast, Collective::all_gather,
                                Collective::reduce_scatter, Collective::all_to_all, Collective::gather, Collective::scatter})
    rows.push_back(row_of(each, *job, cluster, bytes));
  if (json) {
    print_json(rows);
    return {};
  }
  fmt::print("{}, {} on {}\n", bytes_text(bytes), plural(static_cast<int>(job->graph.ranks.size()), "rank"),
             plural(static_cast<int>(hosts.size()), "host"));
  print(rows, static_cast<double>(bytes), static_cast<double>(job->graph.ranks.size()));
  return {};
}

}  // namespace shoal::topo_tool
