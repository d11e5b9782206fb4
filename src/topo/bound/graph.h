// SPDX-License-Identifier: Apache-2.0
// A directed graph of links with bandwidths, and how much flows through it. Pure; one thread.
#pragma once

#include <string>
#include <vector>

namespace shoal::topo {

struct Graph {
  // More than any link has: for links whose bandwidth is not known, so that what is computed stays a bound.
  static constexpr double kUnlimited = 1e18;

  struct Edge {
    int from = 0, to = 0;
    double Bps = 0;
  };
  std::vector<std::string> names;  // of vertices
  std::vector<Edge> edges;
  std::vector<int> ranks;  // vertex of each rank

  int add(std::string name);
  void join(int a, int b, double Bps);  // both ways
  Graph reversed() const;
};

struct Flow {
  double Bps = 0;
  std::vector<bool> source_side;  // a least cut: vertices that stay with the sources
};

// From some vertices together to others together (Dinic's algorithm).
Flow max_flow(const Graph& graph, const std::vector<int>& sources, const std::vector<int>& sinks);
// The same where each source has no more than `limit` to send.
Flow max_flow(const Graph& graph, const std::vector<int>& sources, double limit, const std::vector<int>& sinks);

}  // namespace shoal::topo
