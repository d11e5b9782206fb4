// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "compress/one_bit/one_bit.h"
#include "compress/vectors.h"
#include "plan/plan.h"

using namespace shoal::compress;
using namespace testing;
using one_bit::Columns;

namespace {

// The column that an element belongs to, as the reference below sees it.
std::size_t column_of(const Columns& columns, std::size_t i) {
  return columns.column == 0 ? i % columns.stride : i / columns.column;
}

// Quantised by plain loops in float64. Of a matrix without gaps, or a vector.
Wide reference(const Columns& columns, const std::vector<float>& v) {
  std::vector<double> sums(2 * columns.count()), counts(2 * columns.count());
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::size_t at = 2 * column_of(columns, i) + (v[i] >= 0 ? 1 : 0);
    sums[at] += static_cast<double>(v[i]);
    counts[at] += 1;
  }
  Wide result(v.size());
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::size_t at = 2 * column_of(columns, i) + (v[i] >= 0 ? 1 : 0);
    result[i] = sums[at] / counts[at];
  }
  return result;
}

std::vector<float> round_trip(const Columns& columns, const std::vector<float>& v) {
  std::vector<std::byte> wire(columns.wire_bytes() + 1, std::byte{0x5a});
  one_bit::encode(columns, {v.data()}, wire.data());
  REQUIRE(wire.back() == std::byte{0x5a});  // not a byte more
  std::vector<float> out(v.size(), -777);
  one_bit::decode(columns, wire.data(), out.data());
  return out;
}

struct State {
  std::vector<float> residual, sum_residual;
  std::size_t sum_first;
};

State state_of(const Compressor& compressor, std::size_t n) {
  const auto bytes = saved(compressor);
  StateReader reader(bytes);
  State state{std::vector<float>(n), {}, 0};
  reader.floats(state.residual);
  state.sum_first = reader.number();
  state.sum_residual.resize(reader.number());
  REQUIRE(reader.floats(state.sum_residual));
  return state;
}

}  // namespace

TEST_CASE("one bit: every element becomes the mean of its sign's elements in its column, whatever the remainders") {
  const auto columns = GENERATE(
      values({Columns::of_matrix(1, 1, 1), Columns::of_matrix(1, 17, 17), Columns::of_matrix(7, 3, 3),
              Columns::of_matrix(8, 16, 16), Columns::of_matrix(9, 15, 15), Columns::of_matrix(31, 33, 33),
              Columns::of_matrix(32, 48, 48), Columns::of_matrix(33, 5, 5), Columns::of_matrix(57, 513, 513),
              Columns::of_matrix(200, 1, 1), Columns::of_vector(0, 128), Columns::of_vector(1, 128), Columns::of_vector(7, 512),
              Columns::of_vector(127, 128), Columns::of_vector(128, 128), Columns::of_vector(255, 128),
              Columns::of_vector(4097, 512), Columns::of_vector(4097, 640), Columns::of_vector(100003, 1024)}));
  const auto v = random_vector(columns.elements(), 3);
  const auto out = round_trip(columns, v);
  const Wide expected = reference(columns, v);
  CAPTURE(columns.rows, columns.width, columns.column);
  for (std::size_t i = 0; i < v.size(); ++i) {
    CAPTURE(i);
    REQUIRE(static_cast<double>(out[i]) == Approx(expected[i]).epsilon(1e-5));
  }
}

TEST_CASE("one bit: whole numbers come out exactly: constant columns, empty classes, and zeros of both signs") {
  std::vector<float> v(40 * 5);
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::size_t row = i / 5;
    const std::array<float, 5> each = {3, -2, row % 2 == 0 ? 6.0F : -4.0F, row % 2 == 0 ? 0.0F : -0.0F, row < 10 ? 8.0F : 0.0F};
    v[i] = each[i % 5];
  }
  const auto out = round_trip(Columns::of_matrix(40, 5, 5), v);
  for (std::size_t i = 0; i < v.size(); ++i) REQUIRE(out[i] == (i % 5 == 4 ? 2.0F : v[i]));  // 10 * 8 / 40
}

TEST_CASE("one bit: columns inside a wider matrix: nothing beside them is read or written") {
  constexpr std::size_t kRows = 45, kStride = 100, kFirst = 13, kWidth = 39;
  std::vector<float> matrix(kRows * kStride, kNan), packed;
  const auto v = random_vector(kRows * kWidth, 5);
  for (std::size_t i = 0; i < v.size(); ++i) matrix[i / kWidth * kStride + kFirst + i % kWidth] = v[i];
  const Columns inside = Columns::of_matrix(kRows, kWidth, kStride), apart = Columns::of_matrix(kRows, kWidth, kWidth);
  std::vector<std::byte> wire(inside.wire_bytes()), other(apart.wire_bytes());
  one_bit::encode(inside, {matrix.data() + kFirst}, wire.data());
  one_bit::encode(apart, {v.data()}, other.data());
  REQUIRE(wire == other);
  std::vector<float> out(matrix.size(), -777), expected(v.size());
  one_bit::decode(inside, wire.data(), out.data() + kFirst);
  one_bit::decode(apart, wire.data(), expected.data());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t k = i % kStride - kFirst;
    REQUIRE(out[i] == (k < kWidth ? expected[i / kStride * kWidth + k] : -777.0F));
  }
  std::vector<float> sum = matrix, kept = matrix;
  one_bit::decode_add(inside, wire.data(), sum.data() + kFirst);
  one_bit::keep(inside, matrix.data() + kFirst, 2, wire.data(), kept.data() + kFirst);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t k = i % kStride - kFirst;
    if (k >= kWidth) {
      REQUIRE(std::isnan(sum[i]));
      REQUIRE(std::isnan(kept[i]));
    } else {
      const float q = expected[i / kStride * kWidth + k];
      REQUIRE(sum[i] == matrix[i] + q);
      REQUIRE(kept[i] == (2 * matrix[i] + matrix[i]) - q);
    }
  }
}

TEST_CASE("one bit: a column with a NaN, an infinity or an overflow has no finite element, others are not touched") {
  const float bad = GENERATE(values({kNan, kInfinity, -kInfinity}));
  const auto columns = GENERATE(values({Columns::of_matrix(50, 20, 20), Columns::of_vector(1000, 128)}));
  auto v = random_vector(1000, 5);
  const auto clean = round_trip(columns, v);
  v[333] = bad;
  const auto out = round_trip(columns, v);
  for (std::size_t i = 0; i < v.size(); ++i)
    if (column_of(columns, i) == column_of(columns, 333))
      REQUIRE(!std::isfinite(out[i]));
    else
      REQUIRE(out[i] == clean[i]);
}

TEST_CASE("one bit: a wire is a bit an element and 8 bytes a column, and may have any alignment") {
  REQUIRE(Columns::of_matrix(4096, 1024, 1024).wire_bytes() == 4096 * 1024 / 8 + 8 * 1024);
  REQUIRE(Columns::of_vector(4 << 20, 512).wire_bytes() == (4 << 20) / 8 + 8 * (4 << 20) / 512);
  REQUIRE(Columns::of_matrix(9, 3, 3).wire_bytes() == 2 * 3 + 8 * 3);
  REQUIRE(Columns::of_vector(1025, 512).wire_bytes() == 1024 / 8 + 1 + 8 * 3);
  REQUIRE(Columns::of_vector(0, 512).wire_bytes() == 0);
  const Columns columns = Columns::of_matrix(70, 37, 37);
  const auto v = random_vector(columns.elements(), 9);
  std::vector<std::byte> wire(columns.wire_bytes() + 3);
  one_bit::encode(columns, {v.data()}, wire.data() + 3);
  std::vector<float> out(v.size());
  one_bit::decode(columns, wire.data() + 3, out.data());
  REQUIRE(out == round_trip(columns, v));
}

TEST_CASE("onebit: at every world and awkward lengths all ranks get the same bits; two roundings and nothing else") {
  const int world = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9);
  const auto shape = GENERATE(Shape{0, 1}, Shape{1, 1}, Shape{2, 1}, Shape{57, 1}, Shape{255, 1}, Shape{4097, 1}, Shape{4097, 17},
                              Shape{130 * 5, 130}, Shape{150 * 40, 150});
  const auto inputs = random_vectors(world, shape.elements, 1);
  const auto ranks = make_ranks("onebit", "column=128", shape, world);
  const Outcome outcome = all_reduce(ranks, inputs);
  require_alike(outcome);
  const Columns columns = shape.rows >= 128 ? Columns::of_matrix(shape.rows, shape.columns(), shape.columns())
                                            : Columns::of_vector(shape.elements, 128);
  std::vector<float> sum(shape.elements);
  for (const auto& each : inputs) {
    const Wide sent = reference(columns, each);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<float>(sent[i]);
  }
  const Wide expected = reference(columns, sum);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    CAPTURE(world, shape.elements, shape.rows, i);
    if (std::abs(sum[i]) > 1e-4F) REQUIRE(static_cast<double>(outcome.outputs[0][i]) == Approx(expected[i]).epsilon(1e-3));
  }
}

TEST_CASE("onebit: a million and three elements, whole numbers, exactly") {
  constexpr std::size_t kElements = 1'000'003;
  std::vector<float> v(kElements);
  for (std::size_t i = 0; i < kElements; ++i) v[i] = i % 3 == 0 ? 2.0F : -1.0F;
  const Outcome outcome = all_reduce(make_ranks("onebit", "", {kElements, 1}, 3), {v, v, v}, false, false);
  require_alike(outcome);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kElements; ++i) wrong += outcome.outputs[0][i] != 3 * v[i];
  REQUIRE(wrong == 0);
}

TEST_CASE("onebit: bytes are those of the owners' columns, and 20 times fewer than float32") {
  const int world = GENERATE(1, 2, 3, 8);
  const auto shape = GENERATE(Shape{256 * 100, 256}, Shape{4097, 1});
  const auto ranks = make_ranks("onebit", "", shape, world);
  const Outcome outcome = all_reduce(ranks, random_vectors(world, shape.elements, 2), false, false);
  require_alike(outcome);
  const auto bytes = [&](std::size_t q) {
    const bool matrix = shape.rows > 1;
    const auto [begin, end] =
        shoal::plan::chunk_range({matrix ? shape.columns() : (shape.elements + 511) / 512}, world, static_cast<int>(q));
    if (matrix) return (end - begin) * (shape.rows / 8 + 8);
    return (std::min(shape.elements, end * 512) - std::min(shape.elements, begin * 512) + 7) / 8 + 8 * (end - begin);
  };
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::size_t sent = (ranks.size() - 1) * bytes(r), encoded = 0;
    for (std::size_t q = 0; q < ranks.size(); ++q) {
      sent += q == r ? 0 : bytes(q);
      encoded += bytes(q);
    }
    CAPTURE(world, r);
    REQUIRE(outcome.sent[r] == static_cast<double>(sent));
    REQUIRE(ranks[r]->report().encoded_bytes == encoded);
    REQUIRE(encoded * 20 < 4 * shape.elements);
  }
}

TEST_CASE("onebit: nothing is lost: results, residuals of all ranks and of all owners are what went in") {
  const int world = GENERATE(1, 2, 3, 5, 9);
  const bool average = GENERATE(false, true);
  const auto shape = GENERATE(Shape{1000, 1}, Shape{140 * 21, 140});
  const auto ranks = make_ranks("onebit", "column=128", shape, world);
  Wide in(shape.elements), out(shape.elements);
  for (unsigned call = 0; call < 6; ++call) {
    const auto inputs = random_vectors(world, shape.elements, call);
    const Wide sum = sum_of(inputs, average ? 1.0 / world : 1.0);
    for (std::size_t i = 0; i < sum.size(); ++i) in[i] += sum[i];
    const Outcome outcome = all_reduce(ranks, inputs, average);
    require_alike(outcome);
    add(out, outcome.outputs[0]);
    Wide accounted = out;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const State state = state_of(*ranks[r], shape.elements);
      add(accounted, state.residual);
      if (state.sum_residual.empty()) continue;
      const std::size_t width = shape.rows == 1 ? state.sum_residual.size() : state.sum_residual.size() / shape.rows;
      for (std::size_t i = 0; i < state.sum_residual.size(); ++i)
        accounted[state.sum_first + i / width * shape.columns() + i % width] += static_cast<double>(state.sum_residual[i]);
    }
    CAPTURE(world, average, call);
    REQUIRE(off(accounted, in) < 1e-5);
  }
}

TEST_CASE("onebit: a constant gradient is applied in full with feedback, and not without") {
  const auto inputs = random_vectors(3, 700, 4);
  const Wide goal = sum_of(inputs);
  const auto fed = make_ranks("onebit", "", {700, 1}, 3), forgets = make_ranks("onebit", "feedback=0", {700, 1}, 3);
  Wide with(700), without(700);
  constexpr int kCalls = 100;
  for (int call = 0; call < kCalls; ++call) {
    add(with, all_reduce(fed, inputs).outputs[0]);
    add(without, all_reduce(forgets, inputs).outputs[0]);
  }
  for (std::size_t i = 0; i < 700; ++i) {
    with[i] /= kCalls;
    without[i] /= kCalls;
  }
  REQUIRE(off(with, goal) < 0.1);
  REQUIRE(off(without, goal) > 0.4);
}

TEST_CASE("onebit: a rank's NaN or infinity makes its column not finite on all ranks; of it nothing is kept, of others all") {
  const float bad = GENERATE(values({kNan, kInfinity, -kInfinity}));
  const auto ranks = make_ranks("onebit", "column=128", {1000, 1}, 3), others = make_ranks("onebit", "column=128", {1000, 1}, 3);
  const auto inputs = random_vectors(3, 1000, 4);
  all_reduce(ranks, inputs);
  all_reduce(others, inputs);
  std::vector<State> before;
  for (const auto& each : ranks) before.push_back(state_of(*each, 1000));
  auto broken = inputs;
  broken[2][300] = bad;  // column 2: elements 256 to 383
  const Outcome outcome = all_reduce(ranks, broken), clean = all_reduce(others, inputs);
  REQUIRE(outcome.wrong == "");
  for (std::size_t r = 0; r < 3; ++r) {
    const State now = state_of(*ranks[r], 1000), other = state_of(*others[r], 1000);
    for (std::size_t i = 0; i < 1000; ++i) {
      CAPTURE(r, i);
      const bool in_column = i / 128 == 2;
      REQUIRE(std::isfinite(outcome.outputs[r][i]) != in_column);
      if (!in_column) REQUIRE(outcome.outputs[r][i] == clean.outputs[r][i]);
      REQUIRE(now.residual[i] == (in_column && r == 2 ? before[r].residual[i] : other.residual[i]));
      if (i < now.sum_residual.size()) {
        const bool owned = (now.sum_first + i) / 128 == 2;
        REQUIRE(now.sum_residual[i] == (owned ? before[r].sum_residual[i] : other.sum_residual[i]));
      }
    }
  }
}

TEST_CASE("onebit: a state that is saved and loaded goes on bit for bit; one of another length is refused and changes nothing") {
  const Shape shape{140 * 9, 140};
  const auto first = make_ranks("onebit", "", shape, 2), second = make_ranks("onebit", "", shape, 2);
  for (unsigned call = 0; call < 3; ++call) all_reduce(first, random_vectors(2, shape.elements, call));
  for (std::size_t r = 0; r < 2; ++r) {
    const auto bytes = saved(*first[r]);
    REQUIRE(loaded(*second[r], bytes).is_ok());
    REQUIRE(!loaded(*second[r], {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2)}).is_ok());
    const auto status = loaded(*make_ranks("onebit", "", {140 * 9 - 1, 1}, 1)[0], bytes);
    REQUIRE(status.code() == shoal::Code::invalid_argument);
    REQUIRE(status.text().find("not one of 1259 elements") != std::string::npos);
  }
  for (unsigned call = 3; call < 6; ++call) {
    const auto inputs = random_vectors(2, shape.elements, call);
    REQUIRE(all_reduce(first, inputs).outputs == all_reduce(second, inputs).outputs);
  }
}

TEST_CASE("onebit: in another world, or as another rank, an owner's error of other columns is not added") {
  const auto inputs = random_vectors(4, 1024, 4);
  const auto ranks = make_ranks("onebit", "column=128", {1024, 1}, 4);
  all_reduce(ranks, inputs);
  // Ranks 1 and 2 change places: their stripes are as long as before, but not theirs.
  const auto swapped = make_ranks("onebit", "column=128", {1024, 1}, 4),
             cleared = make_ranks("onebit", "column=128", {1024, 1}, 4);
  const std::array<std::size_t, 4> old = {0, 2, 1, 3};
  for (std::size_t r = 0; r < 4; ++r) {
    REQUIRE(loaded(*swapped[r], saved(*ranks[old[r]])).is_ok());
    StateWriter writer;
    writer.floats(state_of(*ranks[old[r]], 1024).residual);
    if (r == 0 || r == 3) {
      REQUIRE(loaded(*cleared[r], saved(*ranks[r])).is_ok());
      continue;
    }
    writer.number(0);
    writer.number(0);
    writer.floats({});
    REQUIRE(loaded(*cleared[r], writer.bytes()).is_ok());
  }
  REQUIRE(all_reduce(swapped, inputs).outputs == all_reduce(cleared, inputs).outputs);
  const auto two = make_ranks("onebit", "column=128", {1024, 1}, 2);
  for (std::size_t r = 0; r < 2; ++r) REQUIRE(loaded(*two[r], saved(*ranks[r])).is_ok());
  require_alike(all_reduce(two, {inputs[0], inputs[1]}));
}

TEST_CASE("onebit: the measured error is the residual's, with feedback and without; input and output may be the same memory") {
  const auto shape = GENERATE(Shape{1001, 1}, Shape{130 * 11, 130});
  const auto input = random_vector(shape.elements, 6);
  for (const auto* options : {"", "feedback=0"}) {
    const auto ranks = make_ranks("onebit", options, shape, 1);
    const Outcome outcome = all_reduce(ranks, {input});
    double squares = 0;
    for (std::size_t i = 0; i < input.size(); ++i) squares += std::pow(static_cast<double>(input[i]), 2);
    REQUIRE(ranks[0]->report().squared_norm == Approx(squares));
    REQUIRE(ranks[0]->report().squared_error < 0.5 * squares);
    REQUIRE(ranks[0]->report().squared_error > 0.3 * squares);  // 1 - 2 / pi of normal values
    const auto apart = make_ranks("onebit", options, shape, 1), in_place = make_ranks("onebit", options, shape, 1);
    for (int call = 0; call < 3; ++call) REQUIRE(alone_in_place(*in_place[0], input) == all_reduce(apart, {input}).outputs[0]);
  }
}
