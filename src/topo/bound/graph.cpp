// SPDX-License-Identifier: Apache-2.0
#include "topo/bound/graph.h"

#include <algorithm>
#include <utility>

namespace shoal::topo {
namespace {

// Below this share of the largest capacity a remainder is rounding.
constexpr double kRounding = 1e-12;

class Dinic {
 public:
  Dinic(const Graph& graph, const std::vector<int>& sources, double limit, const std::vector<int>& sinks)
      : arcs_(graph.names.size() + 2), source_(static_cast<int>(graph.names.size())), sink_(source_ + 1) {
    for (const Graph::Edge& edge : graph.edges) add(edge.from, edge.to, edge.Bps);
    for (const int each : sources) add(source_, each, limit);
    for (const int each : sinks) add(each, sink_, Graph::kUnlimited);
  }

  Flow run() {
    Flow flow;
    while (find_levels()) {
      next_.assign(arcs_.size(), 0);
      for (double pushed = 0; (pushed = push(source_, Graph::kUnlimited * 1e3)) > 0;) flow.Bps += pushed;
    }
    flow.source_side.resize(arcs_.size() - 2);
    for (std::size_t v = 0; v < flow.source_side.size(); ++v) flow.source_side[v] = level_[v] >= 0;
    return flow;
  }

 private:
  struct Arc {
    int to;
    double room;
    std::size_t back;  // the arc the other way, in the list of `to`
  };
  std::vector<Arc>& arcs(int vertex) { return arcs_[static_cast<std::size_t>(vertex)]; }
  int& level(int vertex) { return level_[static_cast<std::size_t>(vertex)]; }

  void add(int from, int to, double room) {
    arcs(from).push_back({to, room, arcs(to).size()});
    arcs(to).push_back({from, 0, arcs(from).size() - 1});
    if (room < Graph::kUnlimited) least_ = std::max(least_, room * kRounding);
  }
  bool find_levels() {
    level_.assign(arcs_.size(), -1);
    level(source_) = 0;
    std::vector<int> queue = {source_};
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (const Arc& arc : arcs(queue[i]))
        if (arc.room > least_ && level(arc.to) < 0) {
          level(arc.to) = level(queue[i]) + 1;
          queue.push_back(arc.to);
        }
    return level(sink_) >= 0;
  }
  // As deep as the graph's longest way, which is short.
  double push(int vertex, double most) {
    if (vertex == sink_) return most;
    for (std::size_t& i = next_[static_cast<std::size_t>(vertex)]; i < arcs(vertex).size(); ++i) {
      Arc& arc = arcs(vertex)[i];
      if (arc.room <= least_ || level(arc.to) != level(vertex) + 1) continue;
      if (const double pushed = push(arc.to, std::min(most, arc.room)); pushed > 0) {
        arc.room -= pushed;
        arcs(arc.to)[arc.back].room += pushed;
        return pushed;
      }
    }
    return 0;
  }

  std::vector<std::vector<Arc>> arcs_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
  int source_, sink_;
  double least_ = 0;
};

}  // namespace

int Graph::add(std::string name) {
  names.push_back(std::move(name));
  return static_cast<int>(names.size()) - 1;
}

void Graph::join(int a, int b, double Bps) {
  edges.push_back({a, b, Bps});
  edges.push_back({b, a, Bps});
}

Graph Graph::reversed() const {
  Graph other = *this;
  for (Edge& edge : other.edges) std::swap(edge.from, edge.to);
  return other;
}

Flow max_flow(const Graph& graph, const std::vector<int>& sources, const std::vector<int>& sinks) {
  return Dinic(graph, sources, Graph::kUnlimited, sinks).run();
}

Flow max_flow(const Graph& graph, const std::vector<int>& sources, double limit, const std::vector<int>& sinks) {
  return Dinic(graph, sources, limit, sinks).run();
}

}  // namespace shoal::topo
