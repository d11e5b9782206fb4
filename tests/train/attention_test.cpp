// SPDX-License-Identifier: Apache-2.0
// Blockwise attention in float64 against the softmax written out, forward and backward: keys in any order and any split,
// documents, padding, queries that see nothing, large scores.
#include "train/nn/attention.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace shoal::train {
namespace {

constexpr std::size_t kHead = 5;

struct Case {
  std::vector<Place> places;
  bool causal;
  double scale = 1;  // of queries: scores up to some 1e3
};

struct Tensors {
  std::vector<double> q, k, v, dout;
};

Tensors random_tensors(std::size_t tokens, double scale) {
  std::mt19937 engine(11);
  std::normal_distribution<double> draw;
  Tensors t;
  for (std::vector<double>* each : {&t.q, &t.k, &t.v, &t.dout}) {
    each->resize(tokens * kHead);
    std::ranges::generate(*each, [&] { return draw(engine); });
  }
  for (double& each : t.q) each *= scale;
  return t;
}

struct Result {
  std::vector<double> out, dq, dk, dv;
};

Result written_out(const Case& c, const Tensors& t) {
  const std::size_t n = c.places.size();
  Result r{std::vector<double>(n * kHead), std::vector<double>(n * kHead), std::vector<double>(n * kHead),
           std::vector<double>(n * kHead)};
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> weight(n, -std::numeric_limits<double>::infinity());
    for (std::size_t j = 0; j < n; ++j)
      if (is_visible(c.places[j], c.places[i], c.causal))
        weight[j] = std::inner_product(&t.q[i * kHead], &t.q[i * kHead] + kHead, &t.k[j * kHead], 0.0) / std::sqrt(double{kHead});
    const double top = std::ranges::max(weight);
    if (std::isinf(top)) continue;
    double sum = 0;
    for (double& each : weight) sum += each = std::exp(each - top);
    for (double& each : weight) each /= sum;
    std::vector<double> dweight(n);
    double mean = 0;
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t d = 0; d < kHead; ++d) {
        r.out[i * kHead + d] += weight[j] * t.v[j * kHead + d];
        r.dv[j * kHead + d] += weight[j] * t.dout[i * kHead + d];
        dweight[j] += t.dout[i * kHead + d] * t.v[j * kHead + d];
      }
    for (std::size_t j = 0; j < n; ++j) mean += weight[j] * dweight[j];
    for (std::size_t j = 0; j < n; ++j) {
      const double dscore = weight[j] * (dweight[j] - mean) / std::sqrt(double{kHead});
      for (std::size_t d = 0; d < kHead; ++d) {
        r.dq[i * kHead + d] += dscore * t.k[j * kHead + d];
        r.dk[j * kHead + d] += dscore * t.q[i * kHead + d];
      }
    }
  }
  return r;
}

// Keys come in pieces of `piece` tokens, the last first.
Result in_pieces(const Case& c, const Tensors& t, std::size_t piece) {
  const std::size_t n = c.places.size();
  Result r{std::vector<double>(n * kHead), std::vector<double>(n * kHead), std::vector<double>(n * kHead),
           std::vector<double>(n * kHead)};
  std::vector<double> lse(n, -std::numeric_limits<double>::infinity()), delta(n);
  const HeadAttention<double> attention{kHead, c.causal};
  const auto rows = [&](auto& array, std::size_t first, std::size_t count) {
    return HeadRows{array.data() + first * kHead, kHead, std::span(c.places).subspan(first, count)};
  };
  const auto all = [&](auto& array) { return rows(array, 0, n); };
  std::vector<std::size_t> firsts;
  for (std::size_t first = 0; first < n; first += piece) firsts.insert(firsts.begin(), first);
  for (const std::size_t first : firsts) {
    const std::size_t count = std::min(piece, n - first);
    attention.add_keys(all(t.q), rows(t.k, first, count), rows(t.v, first, count), all(r.out), lse);
  }
  attention.row_products(all(t.dout), all(std::as_const(r.out)), delta);
  for (const std::size_t first : firsts) {
    const std::size_t count = std::min(piece, n - first);
    attention.add_gradients(all(t.q), rows(t.k, first, count), rows(t.v, first, count), all(t.dout), lse, delta, all(r.dq),
                            rows(r.dk, first, count), rows(r.dv, first, count));
  }
  return r;
}

std::vector<Place> documents(std::initializer_list<int> lengths, int padding = 0) {
  std::vector<Place> places;
  std::int32_t document = 0;
  for (const int length : lengths) {
    for (std::int32_t i = 0; i < length; ++i) places.push_back({document, i});
    ++document;
  }
  places.insert(places.end(), static_cast<std::size_t>(padding), kPadding);
  return places;
}

double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::isnan(a[i]) ? INFINITY : std::max(worst, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
  return worst;
}

}  // namespace

TEST_CASE("FC-54, FC-55: attention over keys in any pieces is the softmax written out: documents, padding, nothing to see") {
  std::vector<Place> scrambled = documents({90});
  std::mt19937 engine(3);
  std::ranges::shuffle(scrambled, engine);
  const std::vector<Case> cases{{documents({1}), true},    {documents({9}), true},         {documents({9}), false},
                                {documents({4, 3}), true}, {documents({4, 3}, 2), false},  {documents({}, 5), true},
                                {documents({300}), true},  {documents({300}), false, 300}, {documents({130, 170}, 7), true, 100},
                                {scrambled, true}};
  for (const Case& c : cases)
    for (const std::size_t piece : {std::size_t{1}, std::size_t{4}, std::size_t{64}, std::size_t{1000}}) {
      CAPTURE(c.places.size(), c.causal, piece);
      const Tensors t = random_tensors(c.places.size(), c.scale);
      const Result expected = written_out(c, t), got = in_pieces(c, t, piece);
      CHECK(apart(got.out, expected.out) < 1e-11);
      CHECK(apart(got.dq, expected.dq) < 1e-11);
      CHECK(apart(got.dk, expected.dk) < 1e-11 * c.scale);
      CHECK(apart(got.dv, expected.dv) < 1e-11);
    }
}

TEST_CASE("FC-55: merging with nothing changes nothing, in either order") {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  std::vector<double> out{1, 2}, nothing{0, 0};
  double lse = 3, empty = kNothing;
  merge_attention<double>(out, lse, nothing, kNothing);
  CHECK((out == std::vector<double>{1, 2} && lse == 3));
  merge_attention<double>(nothing, empty, out, lse);
  CHECK((nothing == std::vector<double>{1, 2} && empty == 3));
  std::vector<double> none{0, 0};
  double both = kNothing;
  merge_attention<double>(none, both, std::vector<double>{0, 0}, kNothing);
  CHECK((none == std::vector<double>{0, 0} && both == kNothing));
  merge_attention<double>(out, lse, std::vector<double>{3, 6}, 3.0);
  CHECK(out[0] == Approx(2).epsilon(1e-15));
  CHECK(lse == Approx(3 + std::log(2.0)).epsilon(1e-15));
}

}  // namespace shoal::train
