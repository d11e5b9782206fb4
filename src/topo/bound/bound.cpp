// SPDX-License-Identifier: Apache-2.0
#include "topo/bound/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace shoal::topo {
namespace {

using plan::Collective;

// Vertices of the ranks of each part.
using Parts = std::vector<std::vector<int>>;

class Search {
 public:
  explicit Search(const Graph& graph) : graph_(graph) {}

  Bound take() { return std::move(best_); }

  void all_gather(double block) {
    // The most that every rank can send to all others at the same time: lowered by each cut that it breaks, which ends at the
    // narrowest one (Dinkelbach's method).
    const std::vector<int>& ranks = graph_.ranks;
    const double n = static_cast<double>(ranks.size());
    double rate = Graph::kUnlimited / n;
    std::vector<bool> narrowest;
    for (bool lowered = true; lowered;) {
      lowered = false;
      for (const int to : ranks) {
        const Flow flow = max_flow(graph_, ranks, rate, {to});
        if (flow.Bps >= n * rate * (1 - 1e-9)) continue;
        const double inside = count(flow.source_side);
        const double next = inside > 0 ? out_of(flow.source_side) / inside : rate;
        if (!(next < rate * (1 - 1e-9))) continue;
        rate = next;
        narrowest = flow.source_side;
        lowered = true;
      }
    }
    if (!narrowest.empty()) raise(block / rate, words(narrowest));
  }

  // From `from` to every other rank.
  void broadcast(double bytes, int from) {
    for (const int to : graph_.ranks)
      if (to != from) through(bytes, max_flow(graph_, {from}, {to}));
  }

  void between_any(double bytes) {
    const int first = graph_.ranks.front();
    for (const int other : graph_.ranks) {
      if (other == first) continue;
      through(bytes, max_flow(graph_, {first}, {other}));
      through(bytes, max_flow(graph_, {other}, {first}));
    }
  }

  // 2 (u-1) n bytes enter the parts together.
  void all_reduce(double bytes, const Parts& parts) {
    if (parts.size() < 2) return;
    double together = 0;
    for (const std::vector<int>& part : parts) together += max_flow(graph_, others(part), part).Bps;
    if (together >= Graph::kUnlimited) return;
    raise(2 * static_cast<double>(parts.size() - 1) * bytes / together,
          fmt::format("what enters {} parts of the job together", parts.size()));
  }

  void all_to_all(double block, const Parts& parts) {
    if (parts.size() < 2) return;
    for (const std::vector<int>& part : parts) {
      const std::vector<int> rest = others(part);
      const double bytes = static_cast<double>(part.size()) * static_cast<double>(rest.size()) * block;
      through(bytes, max_flow(graph_, part, rest));
      through(bytes, max_flow(graph_, rest, part));
    }
  }

  // A block of each rank but the root, into it or out of it.
  void with_root(double block, int root, bool into, const Parts& parts) {
    const auto from = [&](const std::vector<int>& part) {
      through(block * static_cast<double>(part.size()), into ? max_flow(graph_, part, {root}) : max_flow(graph_, {root}, part));
    };
    from(others({root}));
    for (const std::vector<int>& part : parts)
      if (std::find(part.begin(), part.end(), root) == part.end()) from(part);
  }

 private:
  void raise(double seconds, std::string cut) {
    if (seconds > best_.seconds) best_ = {seconds, std::move(cut)};
  }
  void through(double bytes, const Flow& flow) {
    if (flow.Bps > 0 && flow.Bps < Graph::kUnlimited) raise(bytes / flow.Bps, words(flow.source_side));
  }
  std::vector<int> others(const std::vector<int>& part) const {
    std::vector<int> rest;
    for (const int rank : graph_.ranks)
      if (std::find(part.begin(), part.end(), rank) == part.end()) rest.push_back(rank);
    return rest;
  }
  double count(const std::vector<bool>& side) const {
    return static_cast<double>(
        std::count_if(graph_.ranks.begin(), graph_.ranks.end(), [&](int rank) { return side[static_cast<std::size_t>(rank)]; }));
  }
  double out_of(const std::vector<bool>& side) const {
    double sum = 0;
    for (const Graph::Edge& edge : graph_.edges)
      if (side[static_cast<std::size_t>(edge.from)] && !side[static_cast<std::size_t>(edge.to)]) sum += edge.Bps;
    return sum;
  }
  // "2 links of 25 GB/s together from GPU 0, ...": the links that the cut goes through, a few by name.
  std::string words(const std::vector<bool>& side) const {
    constexpr int kNamed = 3;
    std::string text;
    int links = 0;
    double sum = 0;
    for (const Graph::Edge& edge : graph_.edges) {
      if (!side[static_cast<std::size_t>(edge.from)] || side[static_cast<std::size_t>(edge.to)]) continue;
      sum += edge.Bps;
      if (++links <= kNamed)
        text += fmt::format("{}{} to {}", links > 1 ? ", " : "", graph_.names[static_cast<std::size_t>(edge.from)],
                            graph_.names[static_cast<std::size_t>(edge.to)]);
    }
    if (links > kNamed) text += fmt::format(" and {} more", links - kNamed);
    return fmt::format("{} ({:.4g} GB/s)", text, sum / 1e9);
  }

  const Graph& graph_;
  Bound best_;
};

Parts parts_of(const Graph& graph, const std::vector<int>& group_of) {
  std::map<int, std::vector<int>> parts;
  for (std::size_t r = 0; r < graph.ranks.size(); ++r) parts[group_of[r]].push_back(graph.ranks[r]);
  Parts list;
  for (auto& [group, ranks] : parts) list.push_back(std::move(ranks));
  return list;
}

}  // namespace

Bound bound_of(const Graph& graph, Collective collective, double bytes, int root, const std::vector<std::vector<int>>& groups) {
  if (graph.ranks.size() < 2) return {};
  const Graph turned = graph.reversed();
  const int root_vertex = graph.ranks[static_cast<std::size_t>(root)];
  std::vector<Parts> partitions;
  partitions.reserve(groups.size() + 1);
  for (const std::vector<int>& each : groups) partitions.push_back(parts_of(graph, each));
  Parts& alone = partitions.emplace_back();
  for (const int rank : graph.ranks) alone.push_back({rank});

  Search search(graph), other_way(turned);
  switch (collective) {
    case Collective::all_gather:
    case Collective::all_gather_v: search.all_gather(bytes); break;
    case Collective::reduce_scatter: other_way.all_gather(bytes); return other_way.take();
    case Collective::broadcast: search.broadcast(bytes, root_vertex); break;
    case Collective::reduce: other_way.broadcast(bytes, root_vertex); return other_way.take();
    case Collective::all_reduce:
      search.between_any(bytes);
      for (const Parts& each : partitions) search.all_reduce(bytes, each);
      break;
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      for (const Parts& each : partitions) search.all_to_all(bytes, each);
      break;
    case Collective::gather:
    case Collective::scatter:
      for (const Parts& each : partitions) search.with_root(bytes, root_vertex, collective == Collective::gather, each);
      break;
    case Collective::barrier: break;
  }
  return search.take();
}

}  // namespace shoal::topo
