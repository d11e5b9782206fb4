// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include "compress/vectors.h"
#include "plan/plan.h"

using namespace shoal::compress;
using namespace testing;

TEST_CASE("sign_majority: at every world and awkward lengths the sign of most ranks, ties and zeros in turn") {
  const int world = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9);
  const std::size_t n = GENERATE(0, 1, 2, 57, 255, 4097);
  const auto ranks = make_ranks("sign_majority", "", {n, 1}, world);
  for (unsigned call = 0; call < 3; ++call) {
    auto inputs = random_vectors(world, n, call);
    for (std::size_t i = 0; i < n; i += 5)
      for (auto& each : inputs) each[i] = i % 2 == 0 ? 0.0F : -0.0F;
    const Outcome outcome = all_reduce(ranks, inputs);
    require_alike(outcome);
    for (std::size_t i = 0; i < n; ++i) {
      const bool turn = (i + call) % 2 == 0;
      int votes = 0;
      for (const auto& each : inputs) votes += each[i] > 0 || (each[i] == 0 && turn) ? 1 : -1;
      CAPTURE(world, n, i, votes);
      REQUIRE(outcome.outputs[0][i] == (votes > 0 || (votes == 0 && turn) ? 1.0F : -1.0F));
    }
  }
}

TEST_CASE("sign_majority: a million and three elements") {
  constexpr std::size_t kElements = 1'000'003;
  const auto inputs = Vectors(3, random_vector(kElements, 1));
  const Outcome outcome = all_reduce(make_ranks("sign_majority", "", {kElements, 1}, 3), inputs, false, false);
  require_alike(outcome);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kElements; ++i) wrong += outcome.outputs[0][i] * inputs[0][i] < 0;
  REQUIRE(wrong == 0);
}

TEST_CASE("sign_majority: one bit an element both ways, and one float to each rank") {
  const int world = GENERATE(1, 2, 3, 8);
  const std::size_t n = GENERATE(0, 1, 57, 4097);
  const auto ranks = make_ranks("sign_majority", "", {n, 1}, world);
  const Outcome outcome = all_reduce(ranks, random_vectors(world, n, 2));
  const auto bytes = [&](std::size_t q) { return (shoal::plan::chunk_range({n}, world, static_cast<int>(q)).length() + 7) / 8; };
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::size_t sent = (ranks.size() - 1) * (4 + bytes(r)), encoded = 0;
    for (std::size_t q = 0; q < ranks.size(); ++q) {
      sent += q == r ? 0 : bytes(q);
      encoded += bytes(q) + 4;
    }
    REQUIRE(outcome.sent[r] == static_cast<double>(sent));
    REQUIRE(ranks[r]->report().encoded_bytes == encoded);
  }
}

TEST_CASE("sign_majority: magnitude=mean is the sum of the ranks' means; of an average, their mean") {
  const Vectors inputs = {{1, -2, 3}, {-1, -1, 1}, {4, -1, 4}};  // means 2, 1, 3
  const auto ranks = make_ranks("sign_majority", "magnitude=mean", {3, 1}, 3);
  REQUIRE(all_reduce(ranks, inputs).outputs[1] == std::vector<float>{6, -6, 6});
  const Outcome mean = all_reduce(ranks, inputs, true);
  for (std::size_t i = 0; i < 3; ++i) REQUIRE(mean.outputs[2][i] == Approx(i == 1 ? -2 : 2));
  const std::vector<float> zeros(3);
  REQUIRE(all_reduce(ranks, {zeros, zeros, zeros}).outputs[0] == zeros);
}

TEST_CASE("sign_majority: with momentum the sign is that of the running mean") {
  const auto ranks = make_ranks("sign_majority", "momentum=0.9", {1, 1}, 1);
  REQUIRE(all_reduce(ranks, {{10}}).outputs[0][0] == 1);  // mean 1
  for (int call = 0; call < 6; ++call) {
    // m = 0.9^k - (1 - 0.9^k): 0.8, 0.62, ..., positive as long as 0.9^k > 1/2
    CAPTURE(call);
    REQUIRE(all_reduce(ranks, {{-1}}).outputs[0][0] == 1);
  }
  REQUIRE(all_reduce(ranks, {{-1}}).outputs[0][0] == -1);
}

TEST_CASE("sign_majority: one rank with feedback loses nothing") {
  constexpr std::size_t kElements = 301;
  const auto ranks = make_ranks("sign_majority", "magnitude=mean,feedback=1", {kElements, 1}, 1);
  Wide in(kElements), out(kElements);
  for (unsigned call = 0; call < 30; ++call) {
    const auto input = random_vector(kElements, call);
    add(in, input);
    add(out, all_reduce(ranks, {input}).outputs[0]);
    const auto bytes = saved(*ranks[0]);
    StateReader reader(bytes);
    std::vector<float> mean, residual(kElements);
    REQUIRE(reader.number() == kElements);
    REQUIRE(reader.number() == call + 1);
    reader.floats(mean);
    REQUIRE(reader.floats(residual));
    Wide accounted = out;
    add(accounted, residual);
    REQUIRE(off(accounted, in) < 1e-5);
  }
}

TEST_CASE("sign_majority: a residual is meant minus a_k sign, and the measured error is its square") {
  const auto ranks = make_ranks("sign_majority", "feedback=1", {4, 1}, 1);
  all_reduce(ranks, {{1, -3, 2, 2}});  // a = 2
  REQUIRE(ranks[0]->report().squared_error == 1 + 1);
  REQUIRE(ranks[0]->report().squared_norm == 1 + 9 + 4 + 4);
  all_reduce(ranks, {{0, 0, 0, 0}});  // v = -1, -1, 0, 0: a = 0.5; zeros: element 2 + call 1 is odd, so -; element 3 +
  REQUIRE(ranks[0]->report().squared_error == 4 * 0.25);
}

namespace {

// Gradient descent on |x|^2 / 2 from 1, ..., 1 with noisy gradients of several ranks; the mean of |x|^2 / n over the last
// quarter.
double floor_of(const char* options, int world, float rate, unsigned seed) {
  constexpr std::size_t kElements = 32;
  constexpr int kSteps = 4000;
  const auto ranks = make_ranks("sign_majority", options, {kElements, 1}, world);
  std::vector<float> x(kElements, 1);
  double floor = 0;
  std::mt19937 engine(seed);
  std::normal_distribution<float> noise(0, 0.05F);
  for (int step = 0; step < kSteps; ++step) {
    Vectors gradients(static_cast<std::size_t>(world), x);
    for (auto& each : gradients)
      for (float& g : each) g += noise(engine);
    const Outcome outcome = all_reduce(ranks, gradients, true, false);
    for (std::size_t i = 0; i < kElements; ++i) x[i] -= rate * outcome.outputs[0][i];
    if (step >= kSteps * 3 / 4) floor += std::pow(norm(wide(x)), 2) / kElements / (kSteps / 4.0);
  }
  return floor;
}

}  // namespace

TEST_CASE("sign_majority: on a convex problem signs alone stall at a floor that the rate sets; feedback does not") {
  const int world = GENERATE(1, 3);
  const double coarse = std::sqrt(floor_of("", world, 0.2F, 1)), fine = std::sqrt(floor_of("", world, 0.05F, 1));
  const double fed = std::sqrt(floor_of("magnitude=mean,feedback=1", world, 0.2F, 1));
  const double fed_fine = std::sqrt(floor_of("magnitude=mean,feedback=1", world, 0.05F, 1));
  CAPTURE(world, coarse, fine, fed, fed_fine);
  REQUIRE(coarse > 0.08);                            // about rate / sqrt(3)
  REQUIRE(coarse / fine == Approx(4).epsilon(0.3));  // proportional to the rate
  REQUIRE(fed < 0.3 * coarse);                       // at the same rate
  REQUIRE(fed < 0.05);
  REQUIRE(fed_fine < 0.05);
}

TEST_CASE("sign_majority: any rank's NaN or infinity is summed as it is, and nothing of it is remembered") {
  const float bad = GENERATE(values({kNan, kInfinity, -kInfinity}));
  const auto options = "magnitude=mean,momentum=0.5,feedback=1";
  const auto ranks = make_ranks("sign_majority", options, {200, 1}, 3),
             others = make_ranks("sign_majority", options, {200, 1}, 3);
  const auto inputs = random_vectors(3, 200, 3);
  all_reduce(ranks, inputs);
  all_reduce(others, inputs);
  auto broken = inputs;
  broken[1][3] = bad;
  const Outcome outcome = all_reduce(ranks, broken);
  REQUIRE(outcome.wrong == "");
  for (std::size_t r = 0; r < 3; ++r) {
    REQUIRE(ranks[r]->report().dense);
    REQUIRE(!std::isfinite(outcome.outputs[r][3]));
    for (std::size_t i = 0; i < 200; ++i)
      if (i != 3) REQUIRE(outcome.outputs[r][i] == inputs[0][i] + inputs[1][i] + inputs[2][i]);
  }
  REQUIRE(all_reduce(ranks, inputs).outputs == all_reduce(others, inputs).outputs);
}

TEST_CASE("sign_majority: a state that is saved and loaded goes on; one of another length or with other options is refused") {
  const auto options = "magnitude=mean,momentum=0.5,feedback=1";
  const auto first = make_ranks("sign_majority", options, {100, 1}, 2),
             second = make_ranks("sign_majority", options, {100, 1}, 2);
  for (unsigned call = 0; call < 3; ++call) all_reduce(first, random_vectors(2, 100, call));
  for (std::size_t r = 0; r < 2; ++r) REQUIRE(loaded(*second[r], saved(*first[r])).is_ok());
  for (unsigned call = 3; call < 6; ++call) {
    const auto inputs = random_vectors(2, 100, call);
    REQUIRE(all_reduce(first, inputs).outputs == all_reduce(second, inputs).outputs);
  }
  for (const auto& other : {make_ranks("sign_majority", options, {99, 1}, 1), make_ranks("sign_majority", "", {100, 1}, 1)}) {
    const auto status = loaded(*other[0], saved(*first[0]));
    REQUIRE(status.code() == shoal::Code::invalid_argument);
    REQUIRE(status.text().find("the state is not one of") != std::string::npos);
  }
}

TEST_CASE("sign_majority: the world may change between calls, and input and output be the same memory") {
  const auto ranks = make_ranks("sign_majority", "magnitude=mean,feedback=1", {50, 1}, 3);
  const auto inputs = random_vectors(3, 50, 1);
  require_alike(all_reduce(ranks, inputs));
  const auto fresh = make_ranks("sign_majority", "magnitude=mean,feedback=1", {50, 1}, 2);
  for (std::size_t r = 0; r < 2; ++r) REQUIRE(loaded(*fresh[r], saved(*ranks[r])).is_ok());
  require_alike(all_reduce(fresh, {inputs[0], inputs[1]}));

  auto memory = inputs[0];
  const auto apart = make_ranks("sign_majority", "magnitude=mean,feedback=1,momentum=0.9", {50, 1}, 1);
  const auto in_place = make_ranks("sign_majority", "magnitude=mean,feedback=1,momentum=0.9", {50, 1}, 1);
  for (int call = 0; call < 3; ++call) {
    const auto expected = all_reduce(apart, {memory}).outputs[0];
    REQUIRE(alone_in_place(*in_place[0], memory) == expected);
    memory = inputs[1];
  }
}
