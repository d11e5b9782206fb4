// SPDX-License-Identifier: Apache-2.0
// Attention over split sequences, in float64 on ranks that are threads: Ulysses, ring and 2D against the softmax written out,
// forward and backward, and the volumes that they send.
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <random>

#include "fake_exchange.h"
#include "train/parallel/ring_attention.h"
#include "train/parallel/sequence_layout.h"
#include "train/parallel/ulysses.h"

namespace shoal::train {
namespace {

using Values = std::vector<double>;

struct Case {
  std::vector<Place> whole;  // of a sequence
  std::size_t heads = 4;
  bool causal = true;
  double scale = 1;  // of queries
  std::size_t sequences = 2, head = 3;

  std::size_t tokens() const { return whole.size(); }
  AttentionSize size() const { return {.sequences = sequences, .places = whole, .heads = heads, .head = head}; }
};

struct Data {
  Values qkv, dout;  // (sequences, tokens, 3, heads, head), (sequences, tokens, heads, head)
};

Data draw(const Case& c) {
  std::mt19937 engine(17);
  std::normal_distribution<double> normal;
  const std::size_t width = c.heads * c.head, rows = c.sequences * c.tokens();
  Data data{Values(rows * 3 * width), Values(rows * width)};
  for (std::size_t i = 0; i < data.qkv.size(); ++i) data.qkv[i] = normal(engine) * (i / width % 3 == 0 ? c.scale : 1);
  for (double& each : data.dout) each = normal(engine);
  return data;
}

constexpr double kLargeScores = 250;  // of queries: scores up to some 1e3

struct Result {
  Values out, dqkv;
};

// Of one head of one sequence, straight from the definition.
void write_out(const Case& c, const Data& data, std::size_t s, std::size_t h, Result& r) {
  const std::size_t n = c.tokens(), d = c.head, width = c.heads * d;
  const auto at = [&](std::size_t part, std::size_t t) { return ((s * n + t) * 3 + part) * width + h * d; };
  const auto out_at = [&](std::size_t t) { return (s * n + t) * width + h * d; };
  const double root = 1 / std::sqrt(static_cast<double>(d));
  Values weight(n), flowing(n);
  for (std::size_t i = 0; i < n; ++i) {
    double top = -INFINITY, sum = 0, mean = 0;
    for (std::size_t j = 0; j < n; ++j) {
      weight[j] = -INFINITY;
      if (!is_visible(c.whole[j], c.whole[i], c.causal)) continue;
      weight[j] = 0;
      for (std::size_t x = 0; x < d; ++x) weight[j] += data.qkv[at(0, i) + x] * data.qkv[at(1, j) + x] * root;
      top = std::max(top, weight[j]);
    }
    if (std::isinf(top)) continue;
    for (double& each : weight) sum += each = std::exp(each - top);
    for (std::size_t j = 0; j < n; ++j) {
      weight[j] /= sum;
      flowing[j] = 0;
      for (std::size_t x = 0; x < d; ++x) {
        r.out[out_at(i) + x] += weight[j] * data.qkv[at(2, j) + x];
        r.dqkv[at(2, j) + x] += weight[j] * data.dout[out_at(i) + x];
        flowing[j] += data.dout[out_at(i) + x] * data.qkv[at(2, j) + x];
      }
      mean += weight[j] * flowing[j];
    }
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t x = 0; x < d; ++x) {
        r.dqkv[at(0, i) + x] += weight[j] * (flowing[j] - mean) * root * data.qkv[at(1, j) + x];
        r.dqkv[at(1, j) + x] += weight[j] * (flowing[j] - mean) * root * data.qkv[at(0, i) + x];
      }
  }
}

Result written_out(const Case& c, const Data& data) {
  Result r{Values(data.dout.size()), Values(data.qkv.size())};
  for (std::size_t s = 0; s < c.sequences; ++s)
    for (std::size_t h = 0; h < c.heads; ++h) write_out(c, data, s, h, r);
  return r;
}

// What a rank sent, in values.
struct Sent {
  std::size_t heads_forward = 0, heads_backward = 0, ring_forward = 0, ring_backward = 0;
};

struct Parallel {
  Result result;
  std::vector<Sent> sent;
  std::vector<std::size_t> blocks, working_bytes;  // of the ring
  bool padding_is_zero = true, mismatch = false;
};

constexpr double kGarbage = 7;  // in the vectors of padding

// Rows of `width` values of a rank's tokens, out of those of whole sequences.
Values take(const Case& c, const std::vector<std::size_t>& tokens, const Values& whole, std::size_t width) {
  Values mine;
  for (std::size_t s = 0; s < c.sequences; ++s)
    for (const std::size_t token : tokens)
      for (std::size_t x = 0; x < width; ++x)
        mine.push_back(token == SequenceLayout::kNoToken ? kGarbage : whole[(s * c.tokens() + token) * width + x]);
  return mine;
}

// And back; whether padding is 0.
bool put(const Case& c, const std::vector<std::size_t>& tokens, const Values& mine, std::size_t width, Values& whole) {
  bool zero = true;
  for (std::size_t s = 0, row = 0; s < c.sequences; ++s)
    for (const std::size_t token : tokens) {
      for (std::size_t x = 0; x < width; ++x) {
        if (token == SequenceLayout::kNoToken)
          zero = zero && mine[row * width + x] == 0;
        else
          whole[(s * c.tokens() + token) * width + x] = mine[row * width + x];
      }
      ++row;
    }
  return zero;
}

Parallel run(const Case& c, const Data& data, const SequenceLayout& layout) {
  const std::size_t world = layout.ranks(), width = c.heads * c.head;
  Parallel all{.result = {Values(data.dout.size(), NAN), Values(data.qkv.size(), NAN)},
               .sent = std::vector<Sent>(world),
               .blocks = std::vector<std::size_t>(world),
               .working_bytes = std::vector<std::size_t>(world)};
  std::vector<std::unique_ptr<Meeting<double>>> heads, rings;
  for (std::size_t i = 0; i < layout.blocks(); ++i) heads.push_back(std::make_unique<Meeting<double>>(layout.columns()));
  for (std::size_t i = 0; i < layout.columns(); ++i) rings.push_back(std::make_unique<Meeting<double>>(layout.blocks()));
  std::vector<std::vector<Place>> blocks;
  for (std::size_t block = 0; block < layout.blocks(); ++block) blocks.push_back(layout.block_places(block, c.whole));
  std::vector<char> zero(world), mismatch(world);
  on_ranks(world, [&](std::size_t rank) {
    const std::size_t block = layout.block_of(rank), column = layout.column_of(rank);
    FakeExchange<double> across(*heads[block], column), around(*rings[column], block);
    RingAttention<double> ring(around, blocks, c.causal);
    UlyssesAttention<double> ulysses(across, ring, blocks[block]);
    BasicAttention<double>& attention = layout.columns() > 1 ? static_cast<BasicAttention<double>&>(ulysses) : ring;
    const auto tokens = layout.tokens_of(rank);
    const auto places = layout.places_of(rank, c.whole);
    const AttentionSize size{.sequences = c.sequences, .places = places, .heads = c.heads, .head = c.head};
    const Values qkv = take(c, tokens, data.qkv, 3 * width), dout = take(c, tokens, data.dout, width);
    Values out(dout.size(), NAN), dqkv(qkv.size(), NAN), stash(attention.stash_size(size), NAN);
    attention.forward(size, qkv, out, stash);
    Sent& sent = all.sent[rank];
    sent.heads_forward = across.sent;
    sent.ring_forward = around.sent;
    attention.backward(size, qkv, out, stash, dout, dqkv);
    sent.heads_backward = across.sent - sent.heads_forward;
    sent.ring_backward = around.sent - sent.ring_forward;
    all.blocks[rank] = ring.blocks_computed();
    all.working_bytes[rank] = ring.working_bytes();
    mismatch[rank] = across.mismatch ? 1 : 0;
    const bool no_out = put(c, tokens, out, width, all.result.out),
               no_gradient = put(c, tokens, dqkv, 3 * width, all.result.dqkv);
    zero[rank] = no_out && no_gradient ? 1 : 0;
  });
  all.padding_is_zero = std::ranges::count(zero, 0) == 0;
  all.mismatch = std::ranges::count(mismatch, 1) > 0;
  return all;
}

// Largest difference, in units of the largest value, at least of 1.
double apart(const Values& got, const Values& expected) {
  double worst = 0, largest = 1;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i])) return INFINITY;
    worst = std::max(worst, std::abs(got[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return worst / largest;
}

// The gradients of keys in units of the queries that they are made of: where a softmax is nearly one token, what remains of them
// is a difference of rounding.
Values in_units(const Case& c, Values dqkv) {
  for (std::size_t i = 0; i < dqkv.size(); ++i)
    if (i / (c.heads * c.head) % 3 == 1) dqkv[i] /= c.scale;
  return dqkv;
}

void check_equal(const Case& c, const SequenceLayout& layout) {
  CAPTURE(c.tokens(), c.heads, c.causal, c.scale, layout.blocks(), layout.columns(), layout.tokens());
  const Data data = draw(c);
  const Result expected = written_out(c, data);
  const Parallel got = run(c, data, layout);
  CHECK(apart(got.result.out, expected.out) * 1e12 < 1);
  CHECK(apart(in_units(c, got.result.dqkv), in_units(c, expected.dqkv)) * 1e12 < 1);
  CHECK(got.padding_is_zero);
  CHECK_FALSE(got.mismatch);
}

std::vector<Place> documents(std::initializer_list<int> lengths) {
  std::vector<Place> places;
  std::int32_t document = 0;
  for (const int length : lengths) {
    for (std::int32_t i = 0; i < length; ++i) places.push_back({document, i});
    ++document;
  }
  return places;
}

constexpr Placing kPlacings[] = {Placing::contiguous, Placing::striped, Placing::zigzag};

}  // namespace

TEST_CASE("FC-53: ulysses is the softmax written out: lengths and heads that do not divide, one token, documents") {
  for (const bool causal : {true, false})
    for (std::size_t world = 1; world <= 4; ++world) {
      for (const int length : {8, 9, 1})
        for (const std::size_t heads : {8, 7, 3})
          check_equal({.whole = documents({length}), .heads = heads, .causal = causal},
                      SequenceLayout(Placing::contiguous, static_cast<std::size_t>(length), 1, world));
      check_equal({.whole = documents({4, 3}), .causal = causal, .scale = kLargeScores},
                  SequenceLayout(Placing::contiguous, 7, 1, world));
    }
}

TEST_CASE("FC-54: ring attention is the softmax written out in every placing: lengths that do not split, packed documents") {
  for (const bool causal : {true, false})
    for (const Placing placing : kPlacings)
      for (std::size_t world = 1; world <= 4; ++world) {
        for (const int length : {7, 8, 10, 1, 33}) {
          check_equal({.whole = documents({length}), .causal = causal},
                      SequenceLayout(placing, static_cast<std::size_t>(length), world));
          check_equal({.whole = documents({length}), .heads = 1, .causal = causal, .scale = kLargeScores, .sequences = 1},
                      SequenceLayout(placing, static_cast<std::size_t>(length), world));
        }
        check_equal({.whole = documents({4, 3}), .causal = causal}, SequenceLayout(placing, 7, world));
        check_equal({.whole = documents({1, 5, 2, 9}), .causal = causal, .scale = kLargeScores},
                    SequenceLayout(placing, 17, world));
      }
}

TEST_CASE("FC-54: 2999 tokens on 4 ranks, in zig-zag and in a grid") {
  const bool causal = GENERATE(true, false);
  const Case c{.whole = documents({2999}), .heads = 2, .causal = causal, .scale = 100, .sequences = 1, .head = 4};
  check_equal(c, SequenceLayout(Placing::zigzag, 2999, 4));
  check_equal(c, SequenceLayout(Placing::striped, 2999, 2, 2));
}

TEST_CASE("2D attention is the softmax written out: heads inside groups, keys around") {
  for (const bool causal : {true, false})
    for (const Placing placing : kPlacings)
      for (const std::size_t blocks : {std::size_t{2}, std::size_t{3}})
        for (const int length : {16, 13, 1}) {
          check_equal({.whole = documents({length}), .heads = 4, .causal = causal, .scale = 10},
                      SequenceLayout(placing, static_cast<std::size_t>(length), blocks, 2));
          check_equal({.whole = documents({length}), .heads = 3, .causal = causal},
                      SequenceLayout(placing, static_cast<std::size_t>(length), blocks, 2));
        }
}

TEST_CASE("FC-55: blocks in which nothing is seen, ranks without keys, queries that see nothing: 0, no NaN") {
  // The first rank sees only itself; ranks of padding alone; tokens amid the sequence that belong to no document.
  std::vector<Place> holes = documents({8, 8});
  for (const std::size_t at : {0, 5, 6, 15}) holes[at] = kPadding;
  for (const Placing placing : kPlacings) {
    check_equal({.whole = documents({16})}, SequenceLayout(placing, 16, 4));
    check_equal({.whole = documents({2})}, SequenceLayout(placing, 2, 4));
    check_equal({.whole = holes, .scale = kLargeScores}, SequenceLayout(placing, 16, 4));
    check_equal({.whole = std::vector<Place>(9, kPadding)}, SequenceLayout(placing, 9, 4));
    check_equal({.whole = holes, .causal = false}, SequenceLayout(placing, 16, 2, 2));
  }
}

TEST_CASE("ring attention: blocks after all queries are passed on, not computed") {
  const Case c{.whole = documents({16})};
  const Data data = draw(c);
  CHECK(run(c, data, SequenceLayout(Placing::contiguous, 16, 4)).blocks == std::vector<std::size_t>{1, 2, 3, 4});
  CHECK(run(c, data, SequenceLayout(Placing::zigzag, 16, 4)).blocks == std::vector<std::size_t>{4, 4, 4, 4});
}

TEST_CASE("ulysses sends 4 N/P h (P-1)/P values forward and as many backward: constant when length and ranks grow together") {
  for (const std::size_t world : {std::size_t{2}, std::size_t{4}}) {
    const std::size_t length = 12 * world;
    const Case c{.whole = documents({static_cast<int>(length)})};
    const std::size_t h = c.heads * c.head;
    for (const Sent& sent : run(c, draw(c), SequenceLayout(Placing::contiguous, length, 1, world)).sent) {
      CHECK(sent.heads_forward == c.sequences * 4 * (length / world) * h * (world - 1) / world);
      CHECK(sent.heads_backward == sent.heads_forward);
      CHECK(sent.ring_forward + sent.ring_backward == 0);
    }
  }
}

TEST_CASE("a ring sends 2 (P-1) N/P h values forward and P hops more than that backward; its memory falls as 1/P") {
  for (const std::size_t world : {std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    constexpr std::size_t kLength = 24;
    const Case c{.whole = documents({kLength})};
    const std::size_t block = c.sequences * 2 * (kLength / world) * c.heads * c.head;
    const Parallel got = run(c, draw(c), SequenceLayout(Placing::zigzag, kLength, world));
    for (const Sent& sent : got.sent) {
      CHECK(sent.ring_forward == (world - 1) * block);
      CHECK(sent.ring_backward == (world - 1) * block + world * block);
      CHECK(sent.heads_forward + sent.heads_backward == 0);
    }
    for (const std::size_t each : got.working_bytes) CHECK(each == 5 * block * sizeof(double));
  }
}

TEST_CASE("2D attention sends a ring's 2 (m-1) N/m h/g values and the all-to-all's 4 N/P h (g-1)/g forward") {
  constexpr std::size_t kLength = 24, kBlocks = 3, kColumns = 2;
  const Case c{.whole = documents({kLength})};
  const std::size_t h = c.heads * c.head;
  for (const Sent& sent : run(c, draw(c), SequenceLayout(Placing::zigzag, kLength, kBlocks, kColumns)).sent) {
    CHECK(sent.ring_forward == c.sequences * (kBlocks - 1) * 2 * (kLength / kBlocks) * (h / kColumns));
    CHECK(sent.ring_backward == c.sequences * (2 * kBlocks - 1) * 2 * (kLength / kBlocks) * (h / kColumns));
    CHECK(sent.heads_forward == c.sequences * 4 * (kLength / (kBlocks * kColumns)) * h * (kColumns - 1) / kColumns);
    CHECK(sent.heads_backward == sent.heads_forward);
  }
}

}  // namespace shoal::train
