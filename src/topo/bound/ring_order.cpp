// SPDX-License-Identifier: Apache-2.0
#include "topo/bound/ring_order.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

namespace shoal::topo {
namespace {

using Order = std::vector<int>;

constexpr std::size_t kMostExact = 12;          // ranks: 2^11 sets of the others, a millisecond; each more doubles it
constexpr std::int64_t kMostSteps = 8'000'000;  // links looked at by each part of the search, tens of milliseconds
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double cost(const CostMatrix& costs, int from, int to) {
  return costs[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

// The best of all rings, as Held and Karp find it: the best way from rank 0 through a set of others to one of these is one
// through fewer, and a link. First the least slowest link, then the least sum over links no slower than that: both at once would
// not add up.
class BestOfAll {
 public:
  explicit BestOfAll(const CostMatrix& costs) : costs_(costs), others_(costs.size() - 1), ways_(others_ << others_) {}

  Order find() {
    const double slowest = close([](double way, double link) { return std::max(way, link); }, kInfinity).cost;
    Way end = close([](double way, double link) { return way + link; }, slowest);
    Order order(1, 0);
    for (std::size_t set = (std::size_t{1} << others_) - 1; end.last >= 0;) {
      const auto last = static_cast<std::size_t>(end.last);
      order.push_back(end.last + 1);
      end = way(set, last);
      set &= ~(std::size_t{1} << last);
    }
    std::reverse(order.begin() + 1, order.end());
    return order;
  }

 private:
  struct Way {
    double cost = kInfinity;
    int last = -1;  // the rank passed before, counted without rank 0; -1: that one
  };

  Way& way(std::size_t set, std::size_t end) { return ways_[set * others_ + end]; }

  // The best way to rank `to` from any of the set.
  template <typename Join>
  Way best_to(std::size_t set, int to, Join join, double most) {
    Way best;
    for (std::size_t last = 0; last < others_; ++last) {
      if ((set >> last & 1) == 0) continue;
      const double link = cost(costs_, static_cast<int>(last) + 1, to);
      const double joined = link <= most ? join(way(set, last).cost, link) : kInfinity;
      if (best.last < 0 || joined < best.cost) best = {joined, static_cast<int>(last)};
    }
    return best;
  }

  // The best way through all and back, over links that cost `most` or less.
  template <typename Join>
  Way close(Join join, double most) {
    const std::size_t all = (std::size_t{1} << others_) - 1;
    for (std::size_t set = 1; set <= all; ++set)
      for (std::size_t end = 0; end < others_; ++end) {
        if ((set >> end & 1) == 0) continue;
        const std::size_t before = set & ~(std::size_t{1} << end);
        const int to = static_cast<int>(end) + 1;
        const double first = cost(costs_, 0, to);
        way(set, end) = before != 0 ? best_to(before, to, join, most) : Way{first <= most ? first : kInfinity, -1};
      }
    return best_to(all, 0, join, most);
  }

  const CostMatrix& costs_;
  std::size_t others_;
  std::vector<Way> ways_;  // by set and end, both without rank 0
};

Order nearest_neighbours(const CostMatrix& costs, int start) {
  Order order = {start};
  std::vector<bool> used(costs.size());
  used[static_cast<std::size_t>(start)] = true;
  while (order.size() < costs.size()) {
    int best = -1;
    for (int next = 0; next < static_cast<int>(costs.size()); ++next)
      if (!used[static_cast<std::size_t>(next)] &&
          (best < 0 || cost(costs, order.back(), next) < cost(costs, order.back(), best)))
        best = next;
    used[static_cast<std::size_t>(best)] = true;
    order.push_back(best);
  }
  return order;
}

// What links weigh beside the ring's slowest one: quantities that add up, so that a change of the ring is that of a few links.
struct Weight {
  int slower = 0, slowest = 0;  // links
  double sum = 0;               // of all that there are
  friend Weight operator+(const Weight& a, const Weight& b) {
    return {a.slower + b.slower, a.slowest + b.slowest, a.sum + b.sum};
  }
  friend Weight operator-(const Weight& a, const Weight& b) {
    return {a.slower - b.slower, a.slowest - b.slowest, a.sum - b.sum};
  }
};

// A ring that gets better by moving pieces of it elsewhere (Or's moves), as they are or turned round.
class Ring {
 public:
  Ring(const CostMatrix& costs, Order order) : costs_(costs) { take(std::move(order)); }

  // Short pieces first; until nothing helps, or the steps are used up.
  void improve() {
    std::int64_t steps = 0;
    for (bool helped = true; helped;) {
      helped = false;
      for (std::size_t length = 1; length < size_; ++length)
        for (std::size_t begin = 0; begin < size_; ++begin) {
          if ((steps += static_cast<std::int64_t>(2 * (size_ - length))) > kMostSteps) return;
          helped |= move_piece(begin, length);
        }
    }
  }

  Order order() const { return {order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(size_)}; }

 private:
  Weight link(std::size_t from, std::size_t to) const {
    const double each = cost(costs_, order_[from], order_[to]);
    return {each > slowest_ ? 1 : 0, each == slowest_ ? 1 : 0, std::isinf(each) ? 0 : each};
  }

  // Twice round, so that every piece is a range.
  void take(Order order) {
    size_ = order.size();
    slowest_ = ring_cost(costs_, order).slowest;
    order_ = order;
    order_.insert(order_.end(), order.begin(), order.end());
    forth_.assign(1, {});
    back_.assign(1, {});
    for (std::size_t i = 1; i < order_.size(); ++i) {
      forth_.push_back(forth_.back() + link(i - 1, i));
      back_.push_back(back_.back() + link(i, i - 1));
    }
  }

  // Takes the piece out and puts it after the k-th rank of the rest, where that helps. All positions below 2 * size_.
  bool move_piece(std::size_t begin, std::size_t length) {
    const std::size_t last = begin + length - 1, rest = size_ - length;
    const auto at = [&](std::size_t k) { return (last + 1 + k) % size_; };
    const Weight turning = (back_[last] - back_[begin]) - (forth_[last] - forth_[begin]);
    const Weight loose = link(at(rest - 1), begin) + link(last, at(0)), closing = link(at(rest - 1), at(0));
    for (std::size_t k = 0; k < rest; ++k) {
      const bool elsewhere = k + 1 < rest;
      const Weight before = elsewhere ? loose + link(at(k), at(k + 1)) - closing : loose;
      const std::size_t next = at((k + 1) % rest);
      if (elsewhere && helps(link(at(k), begin) + link(last, next) - before)) return put(begin, length, k, false);
      if (helps(link(at(k), last) + link(begin, next) + turning - before)) return put(begin, length, k, true);
    }
    return false;
  }

  bool helps(const Weight& change) const {
    const double rounding = 1e-12 * forth_.back().sum;
    return change.slower == 0 && (change.slowest < 0 || (change.slowest == 0 && change.sum < -rounding));
  }

  bool put(std::size_t begin, std::size_t length, std::size_t k, bool turned) {
    const auto from = [&](std::size_t first) { return order_.begin() + static_cast<std::ptrdiff_t>(first % size_); };
    const auto count = [](std::size_t n) { return static_cast<std::ptrdiff_t>(n); };
    Order order(from(begin), from(begin) + count(length));
    if (turned) std::reverse(order.begin(), order.end());
    const std::size_t end = begin + length, rest = size_ - length;
    order.insert(order.end(), from(end + k + 1), from(end + k + 1) + count(rest - k - 1));
    order.insert(order.end(), from(end), from(end) + count(k + 1));
    take(std::move(order));
    return true;
  }

  const CostMatrix& costs_;
  std::size_t size_ = 0;
  double slowest_ = 0;
  Order order_;                       // twice
  std::vector<Weight> forth_, back_;  // of all links up to a position, and of the same the other way
};

Order searched(const CostMatrix& costs, const Order& plain) {
  const auto size = static_cast<std::int64_t>(costs.size());
  Order best = plain;
  RingCost least = ring_cost(costs, best);
  for (int start = 0; start < std::min(size, kMostSteps / (size * size) + 1); ++start) {
    Order order = nearest_neighbours(costs, start);
    if (const RingCost now = ring_cost(costs, order); now < least) {
      least = now;
      best = std::move(order);
    }
  }
  Ring ring(costs, best);
  ring.improve();
  return ring.order();
}

}  // namespace

RingCost ring_cost(const CostMatrix& costs, const Order& order) {
  RingCost total;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double link = cost(costs, order[i], order[(i + 1) % order.size()]);
    total.slowest = std::max(total.slowest, link);
    total.sum += link;
  }
  return total;
}

Order ring_order(const CostMatrix& costs) {
  Order plain(costs.size());
  std::iota(plain.begin(), plain.end(), 0);
  if (costs.size() < 3) return plain;
  Order best = costs.size() <= kMostExact ? BestOfAll(costs).find() : searched(costs, plain);
  if (!(ring_cost(costs, best) < ring_cost(costs, plain))) return plain;
  std::rotate(best.begin(), std::find(best.begin(), best.end(), 0), best.end());
  return best;
}

}  // namespace shoal::topo
