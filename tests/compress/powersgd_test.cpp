// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include "compress/low_rank/low_rank.h"
#include "compress/vectors.h"

using namespace shoal::compress;
using namespace testing;

namespace {

// Of this rank, rows x columns.
std::vector<float> product(std::size_t rows, std::size_t columns, std::size_t rank, unsigned seed) {
  const auto left = random_vector(rows * rank, seed), right = random_vector(rank * columns, seed + 1000);
  std::vector<float> matrix(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < columns; ++k)
      for (std::size_t j = 0; j < rank; ++j) matrix[i * columns + k] += left[i * rank + j] * right[j * columns + k];
  return matrix;
}

struct State {
  std::uint64_t dense_calls, draws;
  std::vector<float> q, residual;
};

State state_of(const Compressor& compressor, std::size_t q, std::size_t residual) {
  const auto bytes = saved(compressor);
  StateReader reader(bytes);
  State state{reader.number(), reader.number(), std::vector<float>(q), std::vector<float>(residual)};
  reader.floats(state.q);
  reader.floats(state.residual);
  REQUIRE(reader.ok());
  REQUIRE(reader.at_end());
  return state;
}

}  // namespace

TEST_CASE("powersgd: sums of the factors' rank come out exactly, at every world, for a sum and for a mean") {
  const int world = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9);
  const bool average = GENERATE(false, true);
  constexpr std::size_t kRows = 37, kColumns = 53;
  // Every rank's matrix is of rank 1, and all have one of two row spaces: the sum is of rank 2.
  Vectors inputs;
  for (int r = 0; r < world; ++r) {
    const auto left = random_vector(kRows, static_cast<unsigned>(r)), right = random_vector(kColumns, 100 + r % 2);
    inputs.emplace_back(kRows * kColumns);
    for (std::size_t i = 0; i < kRows * kColumns; ++i) inputs.back()[i] = left[i / kColumns] * right[i % kColumns];
  }
  const auto ranks = make_ranks("powersgd", "rank=2", {kRows * kColumns, kRows}, world);
  const auto goal = sum_of(inputs, average ? 1.0 / world : 1.0);
  for (int call = 0; call < 3; ++call) {
    const Outcome outcome = all_reduce(ranks, inputs, average);
    require_alike(outcome);
    CAPTURE(call);
    REQUIRE(outcome.collectives == 2);
    REQUIRE(off(wide(outcome.outputs[0]), goal) < 1e-6);
  }
}

TEST_CASE("powersgd: the traffic is two all-reduces of 4 r a and 4 r b bytes") {
  const int world = GENERATE(2, 3, 8);
  const std::size_t rank = GENERATE(1, 2, 4);
  constexpr std::size_t kRows = 96, kColumns = 80;
  const auto ranks = make_ranks("powersgd", "rank=" + std::to_string(rank), {kRows * kColumns, kRows}, world);
  const Outcome outcome = all_reduce(ranks, Vectors(static_cast<std::size_t>(world), random_vector(kRows * kColumns, 1)));
  require_alike(outcome);
  const double bytes = 4.0 * static_cast<double>(rank * (kRows + kColumns));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    REQUIRE(outcome.sent[r] == Approx(2.0 * (world - 1) / world * bytes).epsilon(1e-12));
    REQUIRE(static_cast<double>(ranks[r]->report().encoded_bytes) == bytes);
    REQUIRE(!ranks[r]->report().dense);
  }
}

TEST_CASE("powersgd: nothing is lost: results and residuals are what went in, in one call and over many") {
  const int world = GENERATE(1, 2, 3, 5, 9);
  const bool average = GENERATE(false, true);
  constexpr std::size_t kRows = 24, kColumns = 31, kElements = kRows * kColumns;
  const auto ranks = make_ranks("powersgd", "rank=2", {kElements, kRows}, world);
  Wide in(kElements), out(kElements);
  for (unsigned call = 0; call < 8; ++call) {
    Vectors inputs;
    for (int r = 0; r < world; ++r) inputs.push_back(random_vector(kElements, call * 10 + static_cast<unsigned>(r)));
    const auto sum = sum_of(inputs, average ? 1.0 / world : 1.0);
    const Outcome outcome = all_reduce(ranks, inputs, average);
    require_alike(outcome);
    for (std::size_t i = 0; i < kElements; ++i) {
      in[i] += sum[i];
      out[i] += static_cast<double>(outcome.outputs[0][i]);
    }
    Wide accounted = out;
    for (const auto& each : ranks) {
      const State state = state_of(*each, 2 * kColumns, kElements);
      for (std::size_t i = 0; i < kElements; ++i) accounted[i] += static_cast<double>(state.residual[i]);
    }
    CAPTURE(call, world, average);
    REQUIRE(off(accounted, in) < 1e-5);
  }
}

TEST_CASE("powersgd: with a constant gradient what was applied comes closer to steps times gradient with each step") {
  const int world = GENERATE(1, 2, 4);
  const int start = GENERATE(0, 1, 2);
  constexpr std::size_t kRows = 30, kColumns = 40;
  Vectors inputs;
  for (int r = 0; r < world; ++r) inputs.push_back(random_vector(kRows * kColumns, 3 + static_cast<unsigned>(r)));
  const auto goal = sum_of(inputs);
  const auto ranks = make_ranks("powersgd", "rank=4,start=" + std::to_string(start), {kRows * kColumns, kRows}, world);
  Wide applied(goal.size());
  double last = 1;
  for (int call = 1; call <= 60; ++call) {
    const Outcome outcome = all_reduce(ranks, inputs);
    require_alike(outcome);
    REQUIRE(ranks[0]->report().dense == (call <= start));
    Wide mean(goal.size());
    for (std::size_t i = 0; i < goal.size(); ++i) {
      applied[i] += static_cast<double>(outcome.outputs[0][i]);
      mean[i] = applied[i] / call;
    }
    const double now = off(mean, goal);
    CAPTURE(call, now, last);
    if (call <= start) REQUIRE(now < 1e-6);
    // After dense steps the error begins at 0, and rises to that of the first compressed ones before it falls.
    if (start == 0 && call <= 20) REQUIRE(now < last);
    if (call == 20) REQUIRE(now < 0.25);
    if (call == 60) REQUIRE(now < 0.09);
    last = now;
  }
}

TEST_CASE("powersgd: without feedback a constant gradient's result comes closer call by call: the power iteration goes on") {
  const int world = GENERATE(1, 3);
  constexpr std::size_t kRows = 30, kColumns = 40;
  Vectors inputs;
  for (int r = 0; r < world; ++r) inputs.push_back(random_vector(kRows * kColumns, 3 + static_cast<unsigned>(r)));
  const auto ranks = make_ranks("powersgd", "rank=3,feedback=0", {kRows * kColumns, kRows}, world);
  double last = 1;
  for (int call = 0; call < 20; ++call) {
    const double now = off(wide(all_reduce(ranks, inputs).outputs[0]), sum_of(inputs));
    CAPTURE(call);
    REQUIRE(now < last);
    last = now;
  }
}

TEST_CASE("powersgd: warm start beats a new factor at each call on a slowly changing matrix, and is not filled anew") {
  constexpr std::size_t kRows = 40, kColumns = 50, kElements = kRows * kColumns;
  const auto warm = make_ranks("powersgd", "rank=2,feedback=0", {kElements, kRows}, 2);
  const auto cold = make_ranks("powersgd", "rank=2,feedback=0,warm=0", {kElements, kRows}, 2);
  const Vectors inputs = {random_vector(kElements, 1), random_vector(kElements, 2)};
  const auto goal = sum_of(inputs);
  double warm_off = 0, cold_off = 0;
  for (int call = 0; call < 15; ++call) {
    warm_off = off(wide(all_reduce(warm, inputs).outputs[0]), goal);
    cold_off = off(wide(all_reduce(cold, inputs).outputs[0]), goal);
  }
  REQUIRE(warm_off < cold_off);
  REQUIRE(state_of(*warm[0], 2 * kColumns, 0).draws == 2);
  REQUIRE(state_of(*cold[0], 2 * kColumns, 0).draws == 2 * 15);
}

TEST_CASE("powersgd: the effective rank is the matrix's; a 3 x 5 at rank 8 is reproduced") {
  const int world = GENERATE(2, 4);
  const auto shape = GENERATE(Shape{15, 3}, Shape{15, 5}, Shape{4, 2});
  Vectors inputs;
  for (int r = 0; r < world; ++r) inputs.push_back(random_vector(shape.elements, static_cast<unsigned>(r)));
  const auto ranks = make_ranks("powersgd", "rank=8,min_rate=0", shape, world);
  for (int call = 0; call < 3; ++call) {
    const Outcome outcome = all_reduce(ranks, inputs);
    require_alike(outcome);
    REQUIRE(!ranks[0]->report().dense);
    REQUIRE(off(wide(outcome.outputs[0]), sum_of(inputs)) < 1e-5);
  }
}

TEST_CASE("powersgd: what is no matrix, or would hardly shrink, goes uncompressed") {
  const int world = GENERATE(1, 2, 4);
  const auto shape = GENERATE(Shape{0, 1}, Shape{1, 1}, Shape{7, 1}, Shape{7, 7}, Shape{15, 3});
  Vectors inputs;
  for (int r = 0; r < world; ++r) inputs.push_back(random_vector(shape.elements, static_cast<unsigned>(r)));
  const auto ranks = make_ranks("powersgd", "", shape, world);
  const Outcome outcome = all_reduce(ranks, inputs);
  require_alike(outcome);
  REQUIRE(outcome.collectives == 1);
  REQUIRE(ranks[0]->report().dense);
  REQUIRE(ranks[0]->report().encoded_bytes == 4 * shape.elements);
  const auto goal = sum_of(inputs);
  for (std::size_t i = 0; i < goal.size(); ++i) REQUIRE(outcome.outputs[0][i] == Approx(goal[i]).margin(1e-6));
}

TEST_CASE("powersgd: zeros stay zeros, and what follows them is not lost") {
  const int world = GENERATE(2, 4);
  constexpr std::size_t kRows = 64, kColumns = 64;
  const auto count = static_cast<std::size_t>(world);
  const auto ranks = make_ranks("powersgd", "rank=2", {kRows * kColumns, kRows}, world);
  for (int call = 0; call < 3; ++call) {
    const Outcome outcome = all_reduce(ranks, Vectors(count, std::vector<float>(kRows * kColumns)));
    require_alike(outcome);
    REQUIRE(outcome.outputs[0] == std::vector<float>(kRows * kColumns));
  }
  const Vectors inputs(count, product(kRows, kColumns, 2, 5));
  const Outcome outcome = all_reduce(ranks, inputs);
  require_alike(outcome);
  REQUIRE(off(wide(outcome.outputs[0]), sum_of(inputs)) < 1e-6);
}

TEST_CASE("powersgd: fewer directions than the rank, equal and zero columns: exact, finite, and found later when they grow") {
  constexpr std::size_t kRows = 20, kColumns = 30;
  auto matrix = product(kRows, kColumns, 1, 7);
  for (std::size_t i = 0; i < kRows; ++i) {
    matrix[i * kColumns + 1] = matrix[i * kColumns];
    matrix[i * kColumns + 2] = 0;
  }
  const auto ranks = make_ranks("powersgd", "rank=3,min_rate=1", {kRows * kColumns, kRows}, 2);
  for (int call = 0; call < 4; ++call) {
    const Outcome outcome = all_reduce(ranks, {matrix, matrix});
    require_alike(outcome);
    REQUIRE(off(wide(outcome.outputs[0]), sum_of({matrix, matrix})) < 1e-6);
    for (std::size_t i = 0; i < kRows; ++i) REQUIRE(std::abs(outcome.outputs[0][i * kColumns + 2]) < 1e-5F);
  }
  const auto richer = product(kRows, kColumns, 3, 8);
  all_reduce(ranks, {richer, richer});
  const Outcome outcome = all_reduce(ranks, {richer, richer});
  REQUIRE(off(wide(outcome.outputs[0]), sum_of({richer, richer})) < 1e-4);
}

TEST_CASE("powersgd: any rank's NaN or infinity is summed as it is, and nothing of it is remembered") {
  const float bad = GENERATE(values({kNan, kInfinity, -kInfinity}));
  constexpr std::size_t kRows = 16, kColumns = 32, kElements = kRows * kColumns;
  const auto ranks = make_ranks("powersgd", "rank=1", {kElements, kRows}, 3);
  const auto others = make_ranks("powersgd", "rank=1", {kElements, kRows}, 3);
  const Vectors inputs = {random_vector(kElements, 1), random_vector(kElements, 2), random_vector(kElements, 3)};
  all_reduce(ranks, inputs);
  all_reduce(others, inputs);
  Vectors broken = inputs;
  broken[1][77] = bad;
  CAPTURE(bad);
  const Outcome outcome = all_reduce(ranks, broken);
  REQUIRE(outcome.wrong == "");
  for (const auto& each : ranks) REQUIRE(each->report().dense);
  for (std::size_t i = 0; i < kElements; ++i) {
    CAPTURE(i);
    for (const auto& each : outcome.outputs) {
      if (i == 77)
        REQUIRE((std::isnan(bad) ? std::isnan(each[i]) : each[i] == bad));
      else
        REQUIRE(each[i] == inputs[0][i] + inputs[1][i] + inputs[2][i]);
    }
  }
  REQUIRE(all_reduce(ranks, inputs).outputs == all_reduce(others, inputs).outputs);
}

TEST_CASE("powersgd: values whose squares overflow or vanish in float32 are no special case") {
  const float factor = GENERATE(values({1e30F, 1e-30F}));
  constexpr std::size_t kRows = 20, kColumns = 24;
  auto matrix = product(kRows, kColumns, 2, 11);
  for (float& x : matrix) x *= factor;
  const auto ranks = make_ranks("powersgd", "rank=2", {kRows * kColumns, kRows}, 2);
  for (int call = 0; call < 3; ++call) {
    const Outcome outcome = all_reduce(ranks, {matrix, matrix});
    require_alike(outcome);
    CAPTURE(factor, call, outcome.outputs[0][0], matrix[0], ranks[0]->report().dense);
    REQUIRE(off(wide(outcome.outputs[0]), sum_of({matrix, matrix})) < 1e-5);
  }
}

TEST_CASE("powersgd: finite values whose factor overflows are summed as they are") {
  constexpr std::size_t kRows = 20, kColumns = 24;
  const std::vector<float> large(kRows * kColumns, 3e38F);
  const auto ranks = make_ranks("powersgd", "", {kRows * kColumns, kRows}, 1);
  REQUIRE(all_reduce(ranks, {large}).outputs[0] == large);
  REQUIRE(ranks[0]->report().dense);
}

TEST_CASE("powersgd: a state that is saved and loaded goes on bit for bit; one of another shape is refused and changes nothing") {
  constexpr std::size_t kRows = 16, kColumns = 32, kElements = kRows * kColumns;
  const auto first = make_ranks("powersgd", "rank=2,start=1", {kElements, kRows}, 2);
  const auto second = make_ranks("powersgd", "rank=2,start=1", {kElements, kRows}, 2);
  const auto call = [](const Ranks& ranks, unsigned seed) {
    return all_reduce(ranks, {random_vector(kElements, seed), random_vector(kElements, seed + 1)}).outputs;
  };
  for (unsigned i = 0; i < 3; ++i) call(first, i);
  for (std::size_t r = 0; r < 2; ++r) {
    const auto bytes = saved(*first[r]);
    REQUIRE(loaded(*second[r], bytes).is_ok());
    const auto other = make_ranks("powersgd", "rank=2", {kElements, kColumns}, 1);
    const auto status = loaded(*other[0], bytes);
    REQUIRE(status.code() == shoal::Code::invalid_argument);
    REQUIRE(status.text().find("not one of 32 x 16, rank 2") != std::string::npos);
    REQUIRE(!loaded(*second[r], {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2)}).is_ok());
  }
  for (unsigned i = 3; i < 6; ++i) REQUIRE(call(first, i) == call(second, i));
}

TEST_CASE("powersgd: a call thrown away between its collectives leaves the state that was") {
  constexpr std::size_t kRows = 16, kColumns = 32, kElements = kRows * kColumns;
  const auto first = make_ranks("powersgd", "rank=2", {kElements, kRows}, 1);
  const auto second = make_ranks("powersgd", "rank=2", {kElements, kRows}, 1);
  const auto matrix = random_vector(kElements, 1);
  for (const auto* ranks : {&first, &second}) all_reduce(*ranks, {matrix});
  const int collectives = GENERATE(0, 1, 2);
  std::vector<float> out(kElements);
  {
    Stages stages = first[0]->all_reduce({matrix.data(), out.data(), kElements}, {{1}, {0}, {}});
    for (int i = 0; i < collectives; ++i) REQUIRE(stages.next()->has_value());
  }
  REQUIRE(all_reduce(first, {matrix}).outputs == all_reduce(second, {matrix}).outputs);
}

TEST_CASE("powersgd: input and output may be the same memory") {
  constexpr std::size_t kRows = 18, kColumns = 33, kElements = kRows * kColumns;
  const auto apart = make_ranks("powersgd", "", {kElements, kRows}, 1);
  const auto in_place = make_ranks("powersgd", "", {kElements, kRows}, 1);
  for (unsigned call = 0; call < 3; ++call) {
    const auto matrix = random_vector(kElements, call);
    REQUIRE(alone_in_place(*in_place[0], matrix) == all_reduce(apart, {matrix}).outputs[0]);
  }
}

TEST_CASE("low rank: vectors become orthonormal, though nearly parallel; a repeated and a zero one become zero") {
  constexpr std::size_t kLength = 1001;
  auto vectors = random_vector(5 * kLength, 3);
  for (std::size_t i = 0; i < kLength; ++i) {
    vectors[kLength + i] = vectors[i] + 1e-3F * vectors[kLength + i];  // nearly the first one
    vectors[2 * kLength + i] = 3 * vectors[i];
    vectors[3 * kLength + i] = 0;
  }
  low_rank::orthonormalise(vectors.data(), kLength, 5, 2);
  for (std::size_t a = 0; a < 5; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      double inner = 0;
      for (std::size_t i = 0; i < kLength; ++i)
        inner += static_cast<double>(vectors[a * kLength + i]) * static_cast<double>(vectors[b * kLength + i]);
      CAPTURE(a, b);
      REQUIRE(inner == Approx(a == b && a != 2 && a != 3 ? 1.0 : 0.0).margin(1e-6));
    }
}

TEST_CASE("low rank: products are those of plain loops, for every remainder of lanes and rows") {
  const std::size_t rows = GENERATE(1, 3, 4, 9), columns = GENERATE(1, 7, 15, 16, 17, 33, 100), rank = GENERATE(1, 3);
  const auto matrix = random_vector(rows * columns, 1), q = random_vector(rank * columns, 2), p = random_vector(rank * rows, 3);
  std::vector<float> mq(rank * rows), mtp(rank * columns), row(columns);
  low_rank::multiply({matrix.data(), 0, rows, columns}, q.data(), rank, mq.data(), rows);
  low_rank::multiply_transposed({matrix.data(), 0, rows, columns}, p.data(), rows, rank, mtp.data());
  for (std::size_t j = 0; j < rank; ++j) {
    for (std::size_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < columns; ++k) sum += static_cast<double>(matrix[i * columns + k]) * q[j * columns + k];
      REQUIRE(mq[j * rows + i] == Approx(sum).margin(1e-5));
    }
    for (std::size_t k = 0; k < columns; ++k) {
      double sum = 0;
      for (std::size_t i = 0; i < rows; ++i) sum += static_cast<double>(matrix[i * columns + k]) * p[j * rows + i];
      REQUIRE(mtp[j * columns + k] == Approx(sum).margin(1e-5));
    }
  }
  for (std::size_t i = 0; i < rows; ++i) {
    low_rank::expand(p.data(), rows, q.data(), columns, rank, i, row.data());
    for (std::size_t k = 0; k < columns; ++k) {
      double sum = 0;
      for (std::size_t j = 0; j < rank; ++j) sum += static_cast<double>(p[j * rows + i]) * q[j * columns + k];
      REQUIRE(row[k] == Approx(sum).margin(1e-5));
    }
  }
}
