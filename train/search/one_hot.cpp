// SPDX-License-Identifier: Apache-2.0
#include "train/search/one_hot.h"

namespace shoal::train {

double cost_of(const OneHotProblem& problem, std::span<const std::size_t> choices) {
  double sum = 0;
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) sum += problem.nodes[v].cost[choices[v]];
  for (const OneHotProblem::Edge& edge : problem.edges)
    sum += edge.cost[choices[edge.from] * problem.nodes[edge.to].cost.size() + choices[edge.to]];
  return sum;
}

double memory_of(const OneHotProblem& problem, std::span<const std::size_t> choices) {
  double sum = 0;
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) sum += problem.nodes[v].memory[choices[v]];
  return sum;
}

}  // namespace shoal::train
