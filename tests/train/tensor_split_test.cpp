// SPDX-License-Identifier: Apache-2.0
// The transformer with its matrices split over ranks that are threads: both forms against one process, what they communicate,
// what they keep, what they refuse; and the cross entropy over a split vocabulary.
#include "train/parallel/tensor_split.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <random>

#include "fake_exchange.h"
#include "train/error.h"
#include "train/model/gpt.h"
#include "train/text_driver.h"

namespace shoal::train {
namespace {

class FakeGroup final : public TensorGroup {
 public:
  FakeGroup(Meeting<float>& meeting, std::size_t rank, bool shares_rows)
      : meeting_(meeting), rank_(rank), shares_rows_(shares_rows) {}

  std::size_t rank() const override { return rank_; }
  std::size_t world() const override { return meeting_.world(); }
  std::size_t my_rows(std::size_t whole) const override { return shares_rows_ ? whole / world() : whole; }
  std::size_t my_first_row(std::size_t whole) const override { return shares_rows_ ? rank_ * my_rows(whole) : 0; }

  std::span<float> enter(std::span<float> mine, std::span<float> room) override { return gather(mine, room); }
  std::span<float> enter_backward(std::span<float> whole, std::span<float> room) override { return sum(whole, room); }
  std::span<float> leave(std::span<float> whole, std::span<float> room) override { return sum(whole, room); }
  std::span<float> leave_backward(std::span<float> mine, std::span<float> room) override { return gather(mine, room); }
  void all_reduce_max(std::span<float> values) override {
    combine(values, [](float a, float b) { return std::max(a, b); });
  }
  void all_reduce_sum(std::span<float> values) override { combine(values, std::plus()); }

  std::size_t sums = 0, scatters = 0, gathers = 0;  // calls, of activations

 private:
  template <typename Op>
  void combine(std::span<float> values, Op op) {
    std::vector<float> all(values.size());
    meeting_.meet(rank_, values, {}, [&] {
      std::ranges::copy(meeting_.given(0), all.begin());
      for (std::size_t peer = 1; peer < world(); ++peer) std::ranges::transform(all, meeting_.given(peer), all.begin(), op);
    });
    std::ranges::copy(all, values.begin());
  }
  std::span<float> gather(std::span<float> mine, std::span<float> room) {
    if (!shares_rows_) return mine;
    ++gathers;
    meeting_.meet(rank_, mine, {}, [&] {
      auto to = room.begin();
      for (std::size_t peer = 0; peer < world(); ++peer) to = std::ranges::copy(meeting_.given(peer), to).out;
    });
    return room;
  }
  std::span<float> sum(std::span<float> whole, std::span<float> room) {
    combine(whole, std::plus());
    if (!shares_rows_) {
      ++sums;
      return whole;
    }
    ++scatters;
    std::ranges::copy(whole.subspan(rank_ * room.size(), room.size()), room.begin());
    return room;
  }

  Meeting<float>& meeting_;
  std::size_t rank_;
  bool shares_rows_;
};

constexpr GptShape kShape{.vocabulary = 24, .width = 24, .heads = 12, .layers = 2, .hidden = 36};

TextSample random_text(std::size_t sequences, std::size_t length) {
  std::mt19937 engine(7);
  TextSample sample{.sequences = sequences, .length = length};
  for (std::size_t i = 0; i < sequences * length; ++i) {
    sample.inputs.push_back(static_cast<Token>(engine() % kShape.vocabulary));
    sample.targets.push_back(static_cast<std::int32_t>(engine() % kShape.vocabulary));
  }
  sample.targets[1] = kNoTarget;
  return sample;
}

struct Rank {
  double loss = 0;
  std::size_t sums = 0, scatters = 0, gathers = 0;
  std::vector<Tensor> tensors;
  std::vector<float> gradients, before;  // before: the sum of what is replicated
};

std::vector<Rank> split(const GptShape& shape, std::size_t world, bool shares_rows, const TextSample& sample) {
  Meeting<float> meeting(world);
  std::vector<Rank> ranks(world);
  const std::vector<Place> places = places_in_order(sample.length);
  on_ranks(world, [&](std::size_t r) {
    FakeGroup group(meeting, r, shares_rows);
    LocalAttention attention;
    Gpt model(shape, group, attention, 3);
    Rank& rank = ranks[r];
    rank.loss = model.forward_backward(sequences_of(sample, 0, sample.sequences, places, 0.05F));
    rank.sums = group.sums;
    rank.scatters = group.scatters;
    rank.gathers = group.gathers;
    rank.before.assign(model.gradients().begin(), model.gradients().end());
    if (shares_rows) sum_replicated_gradients(group, model.tensors(), model.gradients());
    rank.gradients.assign(model.gradients().begin(), model.gradients().end());
    rank.tensors.assign(model.tensors().begin(), model.tensors().end());
  });
  return ranks;
}

// Relative to the norm of the whole tensor, or of one of its size with the model's average: gradients of key biases are nothing
// but rounding, because a constant more on all scores of a query changes nothing.
double apart(const Tensor& part, std::span<const float> gradients, const Tensor& whole, std::span<const float> expected) {
  double difference = 0, norm = 0, all = 0;
  for (const float each : expected) all += static_cast<double>(each) * static_cast<double>(each);
  const auto wholes = expected.subspan(whole.offset, whole.count);
  std::vector<float> mine(gradients.begin() + static_cast<std::ptrdiff_t>(part.offset),
                          gradients.begin() + static_cast<std::ptrdiff_t>(part.offset + part.count));
  const Piece piece = whole_piece({part.spec, 0, part.count}, mine, {}, {}, {});
  for (const float each : wholes) norm += static_cast<double>(each) * static_cast<double>(each);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const double d = static_cast<double>(mine[i]) - static_cast<double>(wholes[piece.index(i)]);
    difference += d * d;
  }
  return std::sqrt(difference / std::max(norm, all * static_cast<double>(whole.count) / static_cast<double>(expected.size())));
}

}  // namespace

TEST_CASE("tensor parallel: loss and gradients are one process's, tied or not, as all-reduces and with shared rows") {
  const bool shares_rows = GENERATE(false, true), tied = GENERATE(false, true);
  const std::size_t world = GENERATE(2, 3, 4);
  CAPTURE(world, shares_rows, tied);
  GptShape shape = kShape;
  shape.tied = tied;
  const TextSample sample = random_text(4, 6);
  const std::vector<Place> places = places_in_order(sample.length);
  TensorGroup alone;
  LocalAttention attention;
  Gpt model(shape, alone, attention, 3);
  const double loss = model.forward_backward(sequences_of(sample, 0, 4, places, 0.05F));
  for (const Rank& rank : split(shape, world, shares_rows, sample)) {
    CHECK(rank.loss == Approx(loss).epsilon(1e-6));
    REQUIRE(rank.tensors.size() == model.tensors().size());
    for (std::size_t t = 0; t < rank.tensors.size(); ++t) {
      INFO(rank.tensors[t].spec.name);
      CHECK(apart(rank.tensors[t], rank.gradients, model.tensors()[t], model.gradients()) < 1e-6);
    }
  }
}

TEST_CASE("FC-56: with shared rows the gradient of a norm is a part on each rank, and after the sum the same bits on all") {
  const auto ranks = split(kShape, 4, true, random_text(4, 6));
  for (std::size_t t = 0; t < ranks[0].tensors.size(); ++t) {
    const Tensor& tensor = ranks[0].tensors[t];
    if (!tensor.spec.whole.empty()) continue;
    INFO(tensor.spec.name);
    const auto of = [&](const std::vector<float>& gradients) {
      return std::span(gradients).subspan(tensor.offset, tensor.count);
    };
    CHECK_FALSE(std::ranges::equal(of(ranks[0].before), of(ranks[1].before)));
    for (const Rank& rank : ranks) CHECK(std::ranges::equal(of(rank.gradients), of(ranks[0].gradients)));
  }
}

TEST_CASE(
    "tensor parallel: 2 all-reduces forward and 2 backward a layer, or as many reduce-scatters and all-gathers and 2 more") {
  for (const std::size_t layers : {std::size_t{1}, std::size_t{3}}) {
    GptShape shape = kShape;
    shape.layers = layers;
    for (const Rank& rank : split(shape, 2, false, random_text(2, 4))) {
      CHECK(rank.sums == 4 * layers + 2);  // and the embedding's and the head's
      CHECK(rank.gathers + rank.scatters == 0);
    }
    for (const Rank& rank : split(shape, 2, true, random_text(2, 4))) {
      CHECK(rank.sums == 0);
      CHECK(rank.scatters == 4 * layers + 2);
      CHECK(rank.gathers == (4 + 2) * layers + 3);
    }
  }
}

TEST_CASE("tensor parallel: what is kept for backward falls as 1/t with shared rows") {
  const std::vector<Place> places = places_in_order(8);
  const TokenBatch batch{.sequences = 4, .places = places};
  const auto kept = [&](std::size_t world, bool shares_rows) {
    Meeting<float> meeting(world);
    FakeGroup group(meeting, 0, shares_rows);
    LocalAttention attention;
    const auto unit = make_unit(kShape, 1, group, attention, Head::Table::own);
    CHECK(unit->stash_size(batch) > unit->kept_size(batch));
    return unit->kept_size(batch);
  };
  const std::size_t rows = batch.rows(), d = kShape.width, split = 4 * d + 2 * kShape.hidden + kShape.heads;
  CHECK(kept(1, false) == rows * (4 + 3 * d + split));
  CHECK(kept(4, false) == rows * (4 + 3 * d + split / 4));
  CHECK(kept(4, true) == kept(1, false) / 4);
}

TEST_CASE("cross entropy over a split vocabulary: logits up to 1e4, targets anywhere, no overflow") {
  constexpr std::size_t kTokens = 40, kVocabulary = 24;
  std::mt19937 engine(3);
  std::uniform_real_distribution<float> draw(-1e4F, 1e4F);
  std::vector<float> logits(kTokens * kVocabulary);
  std::vector<std::int32_t> targets(kTokens);
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t v = 0; v < kVocabulary; ++v) logits[t * kVocabulary + v] = t % 2 == 0 ? draw(engine) : draw(engine) / 1e4F;
    targets[t] = t == 7 ? kNoTarget : static_cast<std::int32_t>(engine() % kVocabulary);
  }
  double expected = 0;
  std::vector<double> gradient(logits.size());
  for (std::size_t t = 0; t < kTokens; ++t) {
    if (targets[t] < 0) continue;
    const auto row = std::span(logits).subspan(t * kVocabulary, kVocabulary);
    const auto top = static_cast<double>(std::ranges::max(row));
    double sum = 0;
    for (const float each : row) sum += std::exp(static_cast<double>(each) - top);
    const auto target = static_cast<std::size_t>(targets[t]);
    expected += std::log(sum) + top - static_cast<double>(row[target]);
    for (std::size_t v = 0; v < kVocabulary; ++v)
      gradient[t * kVocabulary + v] = std::exp(static_cast<double>(row[v]) - top) / sum - (v == target ? 1 : 0);
  }
  for (const std::size_t world : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    Meeting<float> meeting(world);
    std::vector<double> losses(world);
    std::vector<float> got(logits.size());
    on_ranks(world, [&](std::size_t rank) {
      FakeGroup group(meeting, rank, false);
      const TokenLoss part{.first = rank * (kVocabulary / world), .count = kVocabulary / world};
      std::vector<float> mine;
      for (std::size_t t = 0; t < kTokens; ++t)
        mine.insert(mine.end(), logits.begin() + static_cast<std::ptrdiff_t>(t * kVocabulary + part.first),
                    logits.begin() + static_cast<std::ptrdiff_t>(t * kVocabulary + part.first + part.count));
      std::vector<float> largest(kTokens), sums(kTokens), at_targets(kTokens);
      part.largest(mine, largest);
      group.all_reduce_max(largest);
      part.exponentials(mine, largest, targets, sums, at_targets);
      group.all_reduce_sum(sums);
      group.all_reduce_sum(at_targets);
      losses[rank] = TokenLoss::loss(targets, largest, sums, at_targets);
      part.gradient(mine, targets, sums, 1);
      for (std::size_t t = 0; t < kTokens; ++t)
        std::ranges::copy(std::span(mine).subspan(t * part.count, part.count),
                          got.begin() + static_cast<std::ptrdiff_t>(t * kVocabulary + part.first));
    });
    CAPTURE(world);
    for (const double loss : losses) CHECK(loss == Approx(expected).epsilon(1e-6));
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(static_cast<double>(got[i]) == Approx(gradient[i]).margin(1e-6));
  }
}

TEST_CASE("tensor parallel: what does not divide is refused with both numbers") {
  const GptShape shape{.vocabulary = 256, .width = 96, .heads = 6, .layers = 1, .hidden = 384};
  const auto refused = [](const GptShape& s, std::size_t world, std::size_t rows) {
    try {
      check_tensor_parallel(s, world, rows, "--tp");
    } catch (const Error& error) {
      CHECK(error.code() == Exit::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused(shape, 2, 0).empty());
  CHECK(refused(shape, 4, 0).starts_with("6 heads do not divide over 4 ranks of --tp: "));
  CHECK(refused(shape, 3, 0).starts_with("256 rows of the vocabulary do not divide over 3 ranks of --tp: "));
  GptShape odd = shape;
  odd.hidden = 385;
  CHECK(refused(odd, 2, 0).starts_with("385 values of the hidden layer do not divide over 2 ranks of --tp: "));
  CHECK(refused(shape, 2, 63).starts_with("63 rows of a batch (sequences x tokens) do not divide over 2 ranks of --tp: "));
}

TEST_CASE("volumes: counted beside the formula, and a difference is said") {
  Ledger ledger;
  for (int i = 0; i < 2; ++i) ledger.sent(Moves::all_gather, 300, 3);
  const std::vector<Volume> right{{Moves::all_gather, 1, 200, "each"}}, wrong{{Moves::all_gather, 1, 201, "each"}};
  CHECK(beside_formulas(ledger, 2, right) == "  all_gather a step (each): as the formula\n");
  CHECK(beside_formulas(ledger, 2, wrong).find("NOT as the formula: 2 calls of 400 bytes in 2 steps, expected 2 of 402") !=
        std::string::npos);
  CHECK(beside_formulas(ledger, 2, {}).find("NOT") != std::string::npos);
}

}  // namespace shoal::train
