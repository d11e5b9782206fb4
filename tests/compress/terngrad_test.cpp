// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "compress/vectors.h"
#include "plan/plan.h"

using namespace shoal::compress;
using namespace testing;

namespace {

constexpr auto kAll = "min_elements=0,clip=0";  // neither dense nor clipped

float largest(const std::vector<float>& v) {
  float most = 0;
  for (const float x : v) most = std::max(most, std::abs(x));
  return most;
}

float largest(const Vectors& vectors) {
  float most = 0;
  for (const auto& each : vectors) most = std::max(most, largest(each));
  return most;
}

}  // namespace

TEST_CASE("terngrad: at every world and awkward lengths all ranks get the same whole multiples of the shared scale") {
  const int world = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9);
  const std::size_t n = GENERATE(0, 1, 2, 57, 255, 4097);
  const auto inputs = random_vectors(world, n, 1);
  const auto ranks = make_ranks("terngrad", kAll, {n, 1}, world);
  const float s = largest(inputs);
  for (int call = 0; call < 2; ++call) {
    const Outcome outcome = all_reduce(ranks, inputs);
    require_alike(outcome);
    REQUIRE(!ranks[0]->report().dense);
    for (std::size_t i = 0; i < n; ++i) {
      const float codes = std::round(outcome.outputs[0][i] / s);
      CAPTURE(world, n, i);
      REQUIRE(std::abs(codes) <= static_cast<float>(world));
      REQUIRE(outcome.outputs[0][i] == s * codes);
    }
  }
}

TEST_CASE("terngrad: elements of magnitude s are certain: their sum is exact, also where signs differ") {
  const int world = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9);
  constexpr std::size_t kElements = 257;
  Vectors inputs(static_cast<std::size_t>(world), std::vector<float>(kElements));
  for (std::size_t r = 0; r < inputs.size(); ++r)
    for (std::size_t i = 0; i < kElements; ++i)
      inputs[r][i] = 0.375F * static_cast<float>(static_cast<int>((i * 7 + r * 5) % 3) - 1);
  const Outcome outcome = all_reduce(make_ranks("terngrad", kAll, {kElements, 1}, world), inputs);
  require_alike(outcome);
  REQUIRE(wide(outcome.outputs[0]) == sum_of(inputs));
}

TEST_CASE("terngrad: a million and three elements") {
  constexpr std::size_t kElements = 1'000'003;
  std::vector<float> ones(kElements, 1);
  for (std::size_t i = 0; i < kElements; i += 3) ones[i] = -1;
  const Outcome outcome = all_reduce(make_ranks("terngrad", "", {kElements, 1}, 3), {ones, ones, ones}, false, false);
  REQUIRE(outcome.wrong == "");
  std::size_t wrong = 0;
  for (const auto& each : outcome.outputs)
    for (std::size_t i = 0; i < kElements; ++i) wrong += each[i] != 3 * ones[i];
  REQUIRE(wrong == 0);
}

TEST_CASE("terngrad: the mean of many draws is the sum, within 4 sigma, and their variance is s |g| - g^2 a rank") {
  const int world = GENERATE(1, 3);
  constexpr std::size_t kElements = 61;
  constexpr int kDraws = 20000;
  const auto inputs = random_vectors(world, kElements, 5);
  const auto ranks = make_ranks("terngrad", kAll, {kElements, 1}, world);
  const double s = static_cast<double>(largest(inputs));
  const Wide goal = sum_of(inputs);
  Wide sum(kElements), squares(kElements);
  for (int draw = 0; draw < kDraws; ++draw) {
    const Outcome outcome = all_reduce(ranks, inputs, false, false);
    for (std::size_t i = 0; i < kElements; ++i) {
      const double off_by = static_cast<double>(outcome.outputs[0][i]) - goal[i];
      sum[i] += off_by;
      squares[i] += off_by * off_by;
    }
  }
  double expected_all = 0, measured_all = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    double variance = 0;
    for (const auto& each : inputs) {
      const double g = static_cast<double>(std::abs(each[i]));
      variance += s * g - g * g;
    }
    CAPTURE(i, variance);
    REQUIRE(std::abs(sum[i] / kDraws) <= 4 * std::sqrt(variance / kDraws) + 1e-6);
    if (variance > 0.1 * s * s) REQUIRE(squares[i] / kDraws == Approx(variance).epsilon(0.1));
    expected_all += variance;
    measured_all += squares[i] / kDraws;
  }
  REQUIRE(measured_all == Approx(expected_all).epsilon(0.01));
}

TEST_CASE("terngrad: ranks draw apart: the error of a sum of equal tensors is that of independent draws") {
  constexpr std::size_t kElements = 4096;
  const std::vector<float> one(kElements, 0.5F);
  auto inputs = Vectors(4, one);
  inputs[0][0] = 1;  // s
  const Outcome outcome = all_reduce(make_ranks("terngrad", kAll, {kElements, 1}, 4), inputs);
  double squares = 0;
  for (std::size_t i = 1; i < kElements; ++i) squares += std::pow(static_cast<double>(outcome.outputs[0][i]) - 2.0, 2);
  REQUIRE(squares / (kElements - 1) == Approx(4 * 0.25).epsilon(0.15));  // the same draws on all ranks: 16 * 0.25
}

TEST_CASE("terngrad: up go 2 bits an element, down ceil(log2(2p + 1)), and one float is agreed on") {
  const int world = GENERATE(1, 2, 3, 4, 5, 8, 9);
  const std::size_t n = GENERATE(1, 57, 4097);
  const auto ranks = make_ranks("terngrad", kAll, {n, 1}, world);
  const Outcome outcome = all_reduce(ranks, random_vectors(world, n, 2));
  require_alike(outcome);
  const std::size_t bits = static_cast<std::size_t>(std::ceil(std::log2(2.0 * world + 1)));
  const auto length = [&](std::size_t q) { return shoal::plan::chunk_range({n}, world, static_cast<int>(q)).length(); };
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::size_t up = 0, all = 0;
    for (std::size_t q = 0; q < ranks.size(); ++q) {
      all += (2 * length(q) + 7) / 8;
      if (q != r) up += (2 * length(q) + 7) / 8;
    }
    const std::size_t down = (bits * length(r) + 7) / 8;
    CAPTURE(world, n, r);
    const double agreed = 8.0 * (world - 1) / world;
    REQUIRE(outcome.sent[r] == Approx(static_cast<double>(up + (ranks.size() - 1) * down) + agreed).epsilon(1e-12));
    REQUIRE(ranks[r]->report().encoded_bytes == all + 4);
  }
}

TEST_CASE("terngrad: an average divides before it rounds") {
  const std::vector<float> huge(64, 3e38F);
  const Outcome outcome = all_reduce(make_ranks("terngrad", kAll, {64, 1}, 4), {huge, huge, huge, huge}, true);
  require_alike(outcome);
  for (const float x : outcome.outputs[0]) REQUIRE(x == 3e38F);
}

TEST_CASE("terngrad: clips each rank's tensor at its own root mean squares, and a constant one not at all") {
  constexpr std::size_t kElements = 1024;
  std::vector<float> spike(kElements, 1), flat(kElements, 1);
  spike[7] = 1000;  // root mean square 31.27
  const auto ranks = make_ranks("terngrad", "clip=2,min_elements=0", {kElements, 1}, 2);
  const Outcome outcome = all_reduce(ranks, {spike, flat});
  require_alike(outcome);
  const float s = 2 * std::sqrt((1e6F + kElements - 1) / kElements);
  REQUIRE(outcome.outputs[0][7] >= s * 0.9999F);  // certain on rank 0
  REQUIRE(outcome.outputs[0][7] <= 2 * s * 1.0001F);
  const Outcome constant = all_reduce(ranks, {flat, flat});
  REQUIRE(constant.outputs[0] == std::vector<float>(kElements, 2));

  // Another rank's larger scale does not undo the clipping: the spike counts as s, not as 1000.
  for (float& x : flat) x = 200;
  double mean = 0;
  constexpr int kDraws = 2000;
  for (int draw = 0; draw < kDraws; ++draw)
    mean += static_cast<double>(all_reduce(ranks, {spike, flat}, false, false).outputs[0][7] - 200) / kDraws;
  REQUIRE(std::abs(mean - static_cast<double>(s)) < 4 * std::sqrt(static_cast<double>(200 * s - s * s) / kDraws));
}

TEST_CASE("terngrad: zeros stay zeros, subnormal numbers stay finite") {
  const std::vector<float> zeros(100), tiny(100, 1e-44F);
  const auto ranks = make_ranks("terngrad", kAll, {100, 1}, 3);
  REQUIRE(all_reduce(ranks, {zeros, zeros, zeros}).outputs[2] == zeros);
  const Outcome outcome = all_reduce(ranks, {tiny, zeros, zeros});
  require_alike(outcome);
  for (const float x : outcome.outputs[0]) REQUIRE((x == 0 || x == 1e-44F));
}

TEST_CASE("terngrad: any rank's NaN or infinity is summed as it is, on all ranks alike, and draws go on as if it had not been") {
  const float bad = GENERATE(values({kNan, kInfinity, -kInfinity}));
  const auto inputs = random_vectors(3, 200, 3);
  const auto ranks = make_ranks("terngrad", kAll, {200, 1}, 3), others = make_ranks("terngrad", kAll, {200, 1}, 3);
  auto broken = inputs;
  broken[2][150] = bad;
  const Outcome outcome = all_reduce(ranks, broken);
  REQUIRE(outcome.wrong == "");
  for (std::size_t r = 0; r < 3; ++r) {
    REQUIRE(ranks[r]->report().dense);
    for (std::size_t i = 0; i < 200; ++i)
      if (i != 150) REQUIRE(outcome.outputs[r][i] == inputs[0][i] + inputs[1][i] + inputs[2][i]);
    REQUIRE(!std::isfinite(outcome.outputs[r][150]));
  }
  REQUIRE(all_reduce(ranks, inputs).outputs == all_reduce(others, inputs).outputs);
}

TEST_CASE("terngrad: tensors below min_elements go uncompressed") {
  const auto inputs = random_vectors(2, 1023, 3);
  const auto ranks = make_ranks("terngrad", "", {1023, 1}, 2);
  const Outcome outcome = all_reduce(ranks, inputs);
  require_alike(outcome);
  REQUIRE(ranks[0]->report().dense);
  REQUIRE(off(wide(outcome.outputs[0]), sum_of(inputs)) < 1e-6);
  const auto longer = make_ranks("terngrad", "", {1024, 1}, 2);
  all_reduce(longer, random_vectors(2, 1024, 3));
  REQUIRE(!longer[0]->report().dense);
}

TEST_CASE("terngrad: a state that is saved and loaded draws on; one of another length is refused") {
  const auto inputs = random_vectors(2, 300, 3);
  const auto first = make_ranks("terngrad", kAll, {300, 1}, 2), second = make_ranks("terngrad", kAll, {300, 1}, 2);
  const auto before = all_reduce(first, inputs).outputs;
  REQUIRE(before != all_reduce(first, inputs).outputs);
  for (std::size_t r = 0; r < 2; ++r) REQUIRE(loaded(*second[r], saved(*first[r])).is_ok());
  REQUIRE(all_reduce(first, inputs).outputs == all_reduce(second, inputs).outputs);
  const auto status = loaded(*make_ranks("terngrad", kAll, {301, 1}, 1)[0], saved(*first[0]));
  REQUIRE(status.code() == shoal::Code::invalid_argument);
  REQUIRE(status.text().find("not one of 301 elements") != std::string::npos);
}

TEST_CASE("terngrad: the measured error is that of this rank's codes") {
  std::vector<float> half(1000, 0.5F);
  half[0] = 1;
  const auto ranks = make_ranks("terngrad", kAll, {1000, 1}, 1);
  const Outcome outcome = all_reduce(ranks, {half});
  double squares = 0;
  for (std::size_t i = 0; i < 1000; ++i) squares += std::pow(static_cast<double>(outcome.outputs[0][i] - half[i]), 2);
  REQUIRE(ranks[0]->report().squared_error == Approx(squares));
  REQUIRE(ranks[0]->report().squared_norm == Approx(999 * 0.25 + 1));
}

TEST_CASE("terngrad: input and output may be the same memory") {
  const auto input = random_vector(333, 4);
  const auto apart = make_ranks("terngrad", kAll, {333, 1}, 1), in_place = make_ranks("terngrad", kAll, {333, 1}, 1);
  REQUIRE(alone_in_place(*in_place[0], input) == all_reduce(apart, {input}).outputs[0]);
}
