// SPDX-License-Identifier: Apache-2.0
// The integer program. A column s[v][a] in {0, 1} for each choice; a column e[v,u][a][b] >= 0 for each pair of choices of an
// edge, with
//
//   sum_a s[v][a] = 1        sum_b e[v,u][a][b] = s[v][a]        sum_a e[v,u][a][b] = s[u][b]        sum memory * s <= budget
//
// Where s is whole, e can only be its product: it need not be declared whole.
#include <CbcModel.hpp>
#include <CoinPackedMatrix.hpp>
#include <CoinPackedVector.hpp>
#include <OsiClpSolverInterface.hpp>
#include <algorithm>
#include <cmath>

#include "train/search/one_hot.h"

namespace shoal::train {
namespace {

class Program {
 public:
  explicit Program(const OneHotProblem& problem) : problem_(problem), scale_(kLargestCost / largest_cost()) {
    for (const OneHotProblem::Node& node : problem.nodes) add_node(node);
    for (const OneHotProblem::Edge& edge : problem.edges) add_edge(edge);
    if (std::isfinite(problem.budget)) add_budget();
  }

  std::optional<Choices> solve() const {
    OsiClpSolverInterface solver;
    solver.messageHandler()->setLogLevel(0);
    CoinPackedMatrix matrix(false, 0, 0);
    matrix.setDimensions(0, static_cast<int>(costs_.size()));
    for (const CoinPackedVector& row : rows_) matrix.appendRow(row);
    const std::vector<double> zeros(costs_.size(), 0), ones(costs_.size(), 1);
    solver.loadProblem(matrix, zeros.data(), ones.data(), costs_.data(), lows_.data(), highs_.data());
    for (int column = 0; column < wholes_; ++column) solver.setInteger(column);
    CbcModel model(solver);
    model.setLogLevel(0);
    model.messageHandler()->setLogLevel(0);
    model.branchAndBound();
    if (!model.isProvenOptimal() || model.bestSolution() == nullptr) return std::nullopt;
    return read(model.bestSolution());
  }

 private:
  static constexpr double kLargestCost = 1e4;  // CBC's tolerances are absolute, 1e-5 and less

  double largest_cost() const {
    double largest = 0;
    for (const auto& node : problem_.nodes)
      for (const double cost : node.cost) largest = std::max(largest, cost);
    for (const auto& edge : problem_.edges)
      for (const double cost : edge.cost) largest = std::max(largest, cost);
    return largest > 0 ? largest : 1;
  }

  void add_row(const CoinPackedVector& row, double low, double high) {
    rows_.push_back(row);
    lows_.push_back(low);
    highs_.push_back(high);
  }

  void add_node(const OneHotProblem::Node& node) {
    first_.push_back(wholes_);
    CoinPackedVector one;
    for (const double cost : node.cost) {
      one.insert(wholes_++, 1);
      costs_.push_back(cost * scale_);
    }
    add_row(one, 1, 1);
  }

  void add_edge(const OneHotProblem::Edge& edge) {
    const int from = static_cast<int>(problem_.nodes[edge.from].cost.size());
    const int to = static_cast<int>(problem_.nodes[edge.to].cost.size()), first = static_cast<int>(costs_.size());
    for (const double cost : edge.cost) costs_.push_back(cost * scale_);
    for (int a = 0; a < from; ++a) {
      CoinPackedVector sum;
      for (int b = 0; b < to; ++b) sum.insert(first + a * to + b, 1);
      sum.insert(first_[edge.from] + a, -1);
      add_row(sum, 0, 0);
    }
    for (int b = 0; b < to; ++b) {
      CoinPackedVector sum;
      for (int a = 0; a < from; ++a) sum.insert(first + a * to + b, 1);
      sum.insert(first_[edge.to] + b, -1);
      add_row(sum, 0, 0);
    }
  }

  void add_budget() {
    CoinPackedVector all;
    int column = 0;
    for (const auto& node : problem_.nodes)
      for (const double memory : node.memory) all.insert(column++, problem_.budget > 0 ? memory / problem_.budget : memory);
    add_row(all, -COIN_DBL_MAX, problem_.budget > 0 ? 1 : 0);
  }

  Choices read(const double* solution) const {
    Choices choices;
    for (std::size_t v = 0; v < problem_.nodes.size(); ++v) {
      const double* begin = solution + first_[v];
      choices.push_back(static_cast<std::size_t>(std::max_element(begin, begin + problem_.nodes[v].cost.size()) - begin));
    }
    return choices;
  }

  const OneHotProblem& problem_;
  double scale_;
  int wholes_ = 0;          // columns of nodes, which come first
  std::vector<int> first_;  // column of a node's first choice
  std::vector<double> costs_;
  std::vector<CoinPackedVector> rows_;
  std::vector<double> lows_, highs_;
};

}  // namespace

std::optional<Choices> solve(const OneHotProblem& problem) { return Program(problem).solve(); }

}  // namespace shoal::train
