// SPDX-License-Identifier: Apache-2.0
// One choice for each of several nodes, so that the sum of the choices' costs and of the costs between pairs of choices is least:
// the inner problem of Alpa (Zheng et al. 2022), a 0-1 integer program. Values; any thread.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace shoal::train {

struct OneHotProblem {
  struct Node {
    std::vector<double> cost;    // of each choice
    std::vector<double> memory;  // as many
  };
  struct Edge {
    std::size_t from = 0, to = 0;  // nodes
    std::vector<double> cost;      // [choice of from][choice of to]
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  double budget = std::numeric_limits<double>::infinity();  // of all nodes' memory together
};

using Choices = std::vector<std::size_t>;  // a node's

double cost_of(const OneHotProblem& problem, std::span<const std::size_t> choices);
double memory_of(const OneHotProblem& problem, std::span<const std::size_t> choices);

// The best choices, found by CBC (COIN-OR branch and cut); none if no choices fit the budget. Throws Error (Exit::usage) where
// the program was built without CBC.
std::optional<Choices> solve(const OneHotProblem& problem);

}  // namespace shoal::train
