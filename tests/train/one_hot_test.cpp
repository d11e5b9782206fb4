// SPDX-License-Identifier: Apache-2.0
#include "train/search/one_hot.h"

#include <catch2/catch.hpp>
#include <random>

namespace shoal::train {
namespace {

// All choices, one after another; false after the last one.
bool next(const OneHotProblem& problem, Choices& choices) {
  for (std::size_t v = 0; v < choices.size(); ++v) {
    if (++choices[v] < problem.nodes[v].cost.size()) return true;
    choices[v] = 0;
  }
  return false;
}

std::optional<double> least_cost(const OneHotProblem& problem) {
  std::optional<double> least;
  Choices choices(problem.nodes.size(), 0);
  do {
    if (memory_of(problem, choices) > problem.budget) continue;
    const double cost = cost_of(problem, choices);
    if (!least || cost < *least) least = cost;
  } while (next(problem, choices));
  return least;
}

// Costs of a millisecond's order with a few zeros among them, memories of whole bytes.
OneHotProblem random_problem(std::mt19937& random, std::size_t nodes, std::size_t choices) {
  const auto up_to = [&](std::size_t n) { return static_cast<double>(random() % n); };
  OneHotProblem problem;
  for (std::size_t v = 0; v < nodes; ++v) {
    OneHotProblem::Node& node = problem.nodes.emplace_back();
    for (std::size_t a = 0; a < 1 + random() % choices; ++a) {
      node.cost.push_back(1e-6 * up_to(1000));
      node.memory.push_back(up_to(100));
    }
  }
  for (std::size_t v = 0; v < nodes; ++v)
    for (std::size_t u = v + 1; u < nodes; ++u) {
      if (u > v + 1 && random() % 3 != 0) continue;
      OneHotProblem::Edge edge{.from = v, .to = u, .cost = {}};
      for (std::size_t ab = 0; ab < problem.nodes[v].cost.size() * problem.nodes[u].cost.size(); ++ab)
        edge.cost.push_back(random() % 3 == 0 ? 0 : 1e-6 * up_to(2000));
      problem.edges.push_back(edge);
    }
  return problem;
}

TEST_CASE("one-hot: the solver's choices cost what the best of all choices cost") {
  std::mt19937 random(1);
  for (std::size_t nodes = 1; nodes <= 6; ++nodes)
    for (int round = 0; round < 20; ++round) {
      const OneHotProblem problem = random_problem(random, nodes, 4);
      INFO(nodes << " nodes, round " << round);
      const std::optional<Choices> choices = solve(problem);
      REQUIRE(choices);
      CHECK(cost_of(problem, *choices) == Approx(*least_cost(problem)).margin(1e-12));
    }
}

TEST_CASE("one-hot: the same within a budget of memory, down to where nothing fits") {
  std::mt19937 random(2);
  int fitted = 0, refused = 0;
  for (int round = 0; round < 100; ++round) {
    OneHotProblem problem = random_problem(random, 4, 4);
    problem.budget = static_cast<double>(random() % 300) + 0.5;  // never met exactly
    INFO("round " << round << ", budget " << problem.budget);
    const std::optional<Choices> choices = solve(problem);
    const std::optional<double> least = least_cost(problem);
    REQUIRE(choices.has_value() == least.has_value());
    if (choices) {
      CHECK(memory_of(problem, *choices) <= problem.budget);
      CHECK(cost_of(problem, *choices) == Approx(*least).margin(1e-12));
    }
    ++(choices ? fitted : refused);
  }
  CHECK(fitted > 20);
  CHECK(refused > 5);
}

TEST_CASE("one-hot: costs of nothing, and one choice only") {
  OneHotProblem problem;
  problem.nodes = {{{0, 0}, {0, 0}}, {{0}, {7}}};
  problem.edges = {{0, 1, {0, 0}}};
  CHECK(solve(problem)->size() == 2);
  problem.budget = 0;
  CHECK_FALSE(solve(problem));
}

}  // namespace
}  // namespace shoal::train
