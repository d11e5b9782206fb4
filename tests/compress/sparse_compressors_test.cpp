// SPDX-License-Identifier: Apache-2.0
// What all sparse compressors promise, and what each of them computes.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <set>

#include "compress/allocations.h"
#include "compress/lockstep.h"

using namespace shoal::compress;
using shoal::Code;
using testing::Outcome;

namespace {

using Inputs = std::vector<std::vector<float>>;

struct Case {
  const char* kind;
  const char* options;  // so that what is sent and what is left is what came in
  int counters;         // numbers before the arrays of its state
};
// Whole inputs sum exactly.
const std::array kConserving = {Case{"dropping", "density=0.1", 1},
                                Case{"dropping", "density=0.1,schedule=doubling", 1},
                                Case{"dropping", "density=0.1,schedule=split,values=fp16", 1},
                                Case{"dgc", "density=0.1,momentum=0,dense_below=0", 1},
                                Case{"randomk", "density=0.1", 1},
                                Case{"threshold", "tau=2", 0}};
const std::array kWithState = {Case{"dropping", "density=0.05,sample=0.1", 1},
                               Case{"dgc", "density=0.05,dense_below=0,warmup_steps=2,warmup_epochs=2", 1},
                               Case{"dgc", "density=0.05,dense_below=0,nesterov=1,masking=0,values=fp16", 1},
                               Case{"dgc", "dense_below=1000000", 1},
                               Case{"dgc", "density=1,clip=3", 1},
                               Case{"randomk", "density=0.05", 1},
                               Case{"threshold", "tau=0.7", 0}};

Inputs whole_inputs(int world, std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int> value(-9, 9);
  Inputs inputs(static_cast<std::size_t>(world), std::vector<float>(n));
  for (auto& each : inputs)
    for (float& x : each) x = static_cast<float>(value(engine));
  return inputs;
}

Inputs random_inputs(int world, std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Inputs inputs(static_cast<std::size_t>(world), std::vector<float>(n));
  for (auto& each : inputs)
    for (float& x : each) x = normal(engine);
  return inputs;
}

StateWriter saved(const Compressor& compressor) {
  StateWriter out;
  compressor.save(out);
  return out;
}

// The last array of the state.
std::vector<float> residual(const Compressor& compressor, std::size_t n) {
  const StateWriter state = saved(compressor);
  StateReader in(std::span<const std::byte>(state.bytes()).last(8 + n * sizeof(float)));
  std::vector<float> values(n);
  REQUIRE(in.floats(values));
  return values;
}

// One rank alone, whose collectives do nothing but copy.
void run_alone(Compressor& compressor, Tensor tensor, std::function<double(const shoal::engine::Call&)> predict) {
  Stages stages = compressor.all_reduce(tensor, {.world = {1}, .rank = {0}, .predict = std::move(predict)});
  for (auto next = stages.next();; next = stages.next()) {
    REQUIRE(next.is_ok());
    if (!next->has_value()) return;
    const shoal::engine::Call& call = **next;
    if (call.output != call.input && call.count.value > 0)
      std::memcpy(call.output, call.input, size_of(call.count, call.type).value);
  }
}

void require_same_bits(const Outcome& outcome) {
  REQUIRE(outcome.wrong == "");
  for (const auto& each : outcome.outputs)
    REQUIRE((each.empty() || std::memcmp(each.data(), outcome.outputs.front().data(), each.size() * sizeof(float)) == 0));
}

}  // namespace

TEST_CASE("Sparse compressors, every world and awkward lengths: what was applied and is left is what came in, exactly") {
  const int world = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9);
  const std::size_t n = GENERATE(0, 1, 2, 57, 255, 4097);
  for (const Case& each : kConserving) {
    CAPTURE(each.kind, each.options, world, n);
    const auto ranks = testing::make_ranks(each.kind, each.options, {n, 1}, world);
    std::vector<float> came(n), applied(n);
    for (unsigned call = 0; call < 5; ++call) {
      const Inputs inputs = whole_inputs(world, n, 20 + call);
      const Outcome outcome = testing::all_reduce(ranks, inputs);
      require_same_bits(outcome);
      for (std::size_t i = 0; i < n; ++i) {
        applied[i] += outcome.outputs.front()[i];
        for (const auto& input : inputs) came[i] += input[i];
      }
    }
    for (const auto& rank : ranks) {
      const std::vector<float> left = residual(*rank, n);
      for (std::size_t i = 0; i < n; ++i) applied[i] += left[i];
    }
    REQUIRE(applied == came);
  }
}

TEST_CASE("Sparse compressors conserve floats to 1e-5, with fp16 on the wire and values beyond its range, too") {
  const std::size_t n = 4097;
  for (const char* options : {"density=0.05", "density=0.05,values=fp16", "density=0.05,values=fp16,schedule=doubling"}) {
    const auto ranks = testing::make_ranks("dropping", options, {n, 1}, 3);
    std::vector<double> came(n), applied(n);
    for (unsigned call = 0; call < 6; ++call) {
      Inputs inputs = random_inputs(3, n, call);
      inputs[1][9] = 2e5F;  // fp16 ends at 65504: leaves the residual in portions
      const Outcome outcome = testing::all_reduce(ranks, inputs);
      require_same_bits(outcome);
      for (std::size_t i = 0; i < n; ++i) {
        applied[i] += static_cast<double>(outcome.outputs.front()[i]);
        for (const auto& input : inputs) came[i] += static_cast<double>(input[i]);
      }
    }
    for (const auto& rank : ranks) {
      const std::vector<float> left = residual(*rank, n);
      for (std::size_t i = 0; i < n; ++i) applied[i] += static_cast<double>(left[i]);
    }
    for (std::size_t i = 0; i < n; ++i) REQUIRE(std::abs(applied[i] - came[i]) <= 1e-5 * std::max(1.0, std::abs(came[i])));
  }
}

TEST_CASE("Sparse compressors: saved, loaded into new objects, and on: bit for bit as without") {
  const std::size_t n = 3001;
  for (const Case& each : kWithState) {
    CAPTURE(each.kind, each.options);
    const auto ranks = testing::make_ranks(each.kind, each.options, {n, 1}, 3);
    for (unsigned call = 0; call < 3; ++call) require_same_bits(testing::all_reduce(ranks, random_inputs(3, n, call)));
    const auto others = testing::make_ranks(each.kind, each.options, {n, 1}, 3);
    for (std::size_t r = 0; r < 3; ++r) {
      const StateWriter state = saved(*ranks[r]);
      StateReader in(state.bytes());
      REQUIRE(others[r]->load(in).is_ok());
      REQUIRE(in.at_end());
    }
    for (unsigned call = 3; call < 7; ++call) {
      const Inputs inputs = random_inputs(3, n, call);
      const Outcome one = testing::all_reduce(ranks, inputs), other = testing::all_reduce(others, inputs);
      require_same_bits(one);
      REQUIRE(one.outputs == other.outputs);
    }
  }
}

TEST_CASE("Sparse compressors refuse a state of another length or cut short, and keep their own") {
  for (const Case& each : kWithState) {
    CAPTURE(each.kind, each.options);
    const auto ranks = testing::make_ranks(each.kind, each.options, {100, 1}, 1);
    const auto longer = testing::make_ranks(each.kind, each.options, {101, 1}, 1);
    testing::all_reduce(ranks, random_inputs(1, 100, 1));
    testing::all_reduce(longer, random_inputs(1, 101, 1));
    const std::vector<std::byte> before = saved(*ranks[0]).bytes();
    const StateWriter other = saved(*longer[0]);
    StateReader wrong(other.bytes());
    const shoal::Status status = ranks[0]->load(wrong);
    CHECK(status.code() == Code::invalid_argument);
    CHECK(std::string(status.text()).find("the state is not one of 100 elements") != std::string::npos);
    for (std::size_t cut = 0; cut < before.size(); cut += 37) {
      StateReader shorter(std::span<const std::byte>(before).first(cut));
      REQUIRE_FALSE(ranks[0]->load(shorter).is_ok());
    }
    REQUIRE(saved(*ranks[0]).bytes() == before);
  }
}

TEST_CASE("Sparse compressors: another world from one call to the next") {
  const std::size_t n = 501;
  for (const Case& each : kWithState) {
    CAPTURE(each.kind, each.options);
    auto ranks = testing::make_ranks(each.kind, each.options, {n, 1}, 5);
    for (const std::size_t world : {5, 3, 1}) {
      ranks.resize(world);
      require_same_bits(testing::all_reduce(ranks, random_inputs(static_cast<int>(world), n, 1)));
    }
  }
}

TEST_CASE("Sparse compressors: one rank's NaN or infinity, and all ranks sum the inputs as they are and remember nothing of it") {
  const std::size_t n = 301;
  for (const Case& each : kWithState)
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      CAPTURE(each.kind, each.options, bad);
      const auto ranks = testing::make_ranks(each.kind, each.options, {n, 1}, 3);
      testing::all_reduce(ranks, random_inputs(3, n, 1));
      std::vector<std::vector<std::byte>> before;
      for (const auto& rank : ranks) before.push_back(saved(*rank).bytes());
      Inputs inputs = whole_inputs(3, n, 2);
      inputs[2][300] = bad;
      const Outcome outcome = testing::all_reduce(ranks, inputs);
      REQUIRE(outcome.wrong == "");
      for (std::size_t r = 0; r < 3; ++r) {
        CHECK(saved(*ranks[r]).bytes() == before[r]);
        CHECK(ranks[r]->report().dense);
        CHECK_FALSE(std::isfinite(outcome.outputs[r][300]));
        if (std::string_view(each.options).find("clip") == std::string_view::npos)
          for (std::size_t i = 0; i < 300; ++i) REQUIRE(outcome.outputs[r][i] == inputs[0][i] + inputs[1][i] + inputs[2][i]);
      }
      require_same_bits(testing::all_reduce(ranks, random_inputs(3, n, 3)));
    }
}

TEST_CASE("Sparse compressors: a call that is thrown away half-way leaves the state as it was before it") {
  const std::size_t n = 301;
  for (const Case& each : kWithState) {
    CAPTURE(each.kind, each.options);
    const auto ranks = testing::make_ranks(each.kind, each.options, {n, 1}, 1);
    testing::all_reduce(ranks, random_inputs(1, n, 1));
    const std::vector<std::byte> before = saved(*ranks[0]).bytes();
    std::vector<float> input(n, 1.0F), output(n);
    {
      Stages stages =
          ranks[0]->all_reduce({.input = input.data(), .output = output.data(), .elements = n},
                               {.world = {1}, .rank = {0}, .predict = [](const shoal::engine::Call&) { return 1.0; }});
      REQUIRE(stages.next().is_ok());
    }
    REQUIRE(saved(*ranks[0]).bytes() == before);
    require_same_bits(testing::all_reduce(ranks, random_inputs(1, n, 2)));
  }
}

TEST_CASE("Sparse compressors: output may be the input, averages are scaled before they are selected") {
  const std::size_t n = 57;
  for (const Case& each : kWithState) {
    CAPTURE(each.kind, each.options);
    Inputs inputs = whole_inputs(1, n, 4);
    const auto ranks = testing::make_ranks(each.kind, each.options, {n, 1}, 1);
    const auto others = testing::make_ranks(each.kind, each.options, {n, 1}, 1);
    Inputs halved = inputs;
    for (float& x : halved[0]) x *= 0.5F;
    const Outcome expected = testing::all_reduce(others, halved);
    std::vector<float> memory = inputs[0];
    run_alone(*ranks[0], {.input = memory.data(), .output = memory.data(), .elements = n, .scale = 0.5F},
              [](const shoal::engine::Call&) { return 1.0; });
    REQUIRE(memory == expected.outputs[0]);
  }
}

TEST_CASE("Sparse compressors: a malformed message is an error that names its rank, and the state stays") {
  const std::size_t n = 100;
  for (const char* schedule : {"gather", "doubling", "split"}) {
    CAPTURE(schedule);
    const auto ranks = testing::make_ranks("dropping", std::string("density=0.1,schedule=") + schedule, {n, 1}, 2);
    const std::vector<std::byte> before = saved(*ranks[0]).bytes();
    const std::vector<float> input(n, 1.0F);
    std::vector<float> output(n);
    // Whatever the other rank sends has bits that no message has; as long as it should be.
    Stages stages = ranks[0]->all_reduce({.input = input.data(), .output = output.data(), .elements = n},
                                         {.world = {2}, .rank = {0}, .predict = [](const shoal::engine::Call&) { return 1.0; }});
    shoal::Status status;
    for (auto next = stages.next();; next = stages.next()) {
      status = next.status();
      if (!next.is_ok() || !next->has_value()) break;
      const shoal::engine::Call& call = **next;
      auto* const to = static_cast<std::byte*>(call.output);
      if (call.uneven == nullptr) {
        for (std::size_t q = 0; q < 2; ++q)
          std::memcpy(to + q * call.count.value, static_cast<const std::byte*>(call.input), call.count.value);
      } else if (call.uneven->output.counts[1] == sizeof(std::uint64_t)) {
        std::memcpy(to, call.input, sizeof(std::uint64_t));  // doubling's lengths
      } else {
        const shoal::engine::Blocks& blocks = call.uneven->output;
        if (blocks.counts[0] > 0) std::memcpy(to + blocks.offsets[0], call.input, blocks.counts[0]);
        std::memset(to + blocks.offsets[1], 0xFF, blocks.counts[1]);
      }
    }
    CHECK(status.code() == Code::invalid_usage);
    CHECK(std::string(status.text()) == "compressed message of rank 1: sparse message: there is no format 0xff");
    REQUIRE(status.culprit().has_value());
    CHECK(status.culprit()->value == 1);
    CHECK(saved(*ranks[0]).bytes() == before);
  }
}

TEST_CASE("Sparse compressors allocate nothing from call to call") {
  const std::size_t n = 20000;
  const Inputs inputs = random_inputs(1, n, 1);
  std::vector<float> output(n);
  for (const Case& each : kWithState) {
    CAPTURE(each.kind, each.options);
    const auto ranks = testing::make_ranks(each.kind, each.options, {n, 1}, 1);
    std::size_t before = 0;
    for (int call = 0; call < 30; ++call) {
      if (call == 10) before = testing::allocations();  // lengths that depend on the data have varied
      Stages stages =
          ranks[0]->all_reduce({.input = inputs[0].data(), .output = output.data(), .elements = n},
                               {.world = {1}, .rank = {0}, .predict = [](const shoal::engine::Call&) { return 1.0; }});
      for (auto next = stages.next(); next.is_ok() && next->has_value(); next = stages.next()) {
        const shoal::engine::Call& made = **next;
        if (made.output != made.input && made.count.value > 0)
          std::memcpy(made.output, made.input, size_of(made.count, made.type).value);
      }
    }
    const std::size_t made = testing::allocations() - before;
    CHECK(made == 0);
  }
}

TEST_CASE("Gradient dropping without feedback throws away what is not sent") {
  const auto ranks = testing::make_ranks("dropping", "density=0.5,feedback=0", {4, 1}, 1);
  for (int call = 0; call < 3; ++call) {
    const Outcome outcome = testing::all_reduce(ranks, {{-9, 1, 2, -3}});
    REQUIRE(outcome.outputs[0] == std::vector<float>{-9, 0, 0, -3});
    CHECK(ranks[0]->report().selected == 2);
    CHECK(ranks[0]->report().squared_norm == 81 + 1 + 4 + 9);
    CHECK(ranks[0]->report().squared_error == 1 + 4);
  }
  const auto kept = testing::make_ranks("dropping", "density=0.5", {4, 1}, 1);
  testing::all_reduce(kept, {{-9, 1, 2, -3}});
  CHECK(testing::all_reduce(kept, {{0, 1, 2, 1}}).outputs[0] == std::vector<float>{0, 2, 4, 0});
}

TEST_CASE("Random k: the same places on all ranks, other ones from call to call, every one within a few rounds") {
  const std::size_t n = 1003;
  const auto ranks = testing::make_ranks("randomk", "density=0.1", {n, 1}, 4);
  std::set<std::size_t> seen;
  std::vector<float> last;
  for (int call = 0; call < 100; ++call) {
    const Outcome outcome = testing::all_reduce(ranks, Inputs(4, std::vector<float>(n, 1.0F)));
    require_same_bits(outcome);
    const std::vector<float>& output = outcome.outputs.front();
    std::size_t sent = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (output[i] != 0) {
        ++sent;
        seen.insert(i);
      }
    REQUIRE(sent == 101);
    REQUIRE(output != last);
    last = output;
    CHECK(outcome.collectives == 1);
  }
  CHECK(seen.size() > n - n / 100);
}

TEST_CASE("Strom's threshold: a residual stays within tau while gradients do, and grows by their excess where they do not") {
  const auto ranks = testing::make_ranks("threshold", "tau=1", {2, 1}, 1);
  float applied = 0;
  for (int call = 1; call <= 50; ++call) {
    const Outcome outcome = testing::all_reduce(ranks, {{0.75F, -2.5F}});
    applied += outcome.outputs[0][0];
    const std::vector<float> left = residual(*ranks[0], 2);
    REQUIRE(std::abs(left[0]) <= 1);
    REQUIRE(applied + left[0] == 0.75F * static_cast<float>(call));
    REQUIRE(outcome.outputs[0][1] == -1);
    REQUIRE(left[1] == -1.5F * static_cast<float>(call));
  }
}

TEST_CASE("Strom's threshold: four bytes a code; exactly tau is not sent") {
  const std::size_t n = 1000;
  const auto ranks = testing::make_ranks("threshold", "tau=1", {n, 1}, 2);
  Inputs inputs(2, std::vector<float>(n));
  inputs[0][5] = 1;
  inputs[0][6] = 1.5F;
  inputs[1][6] = -7;
  inputs[1][999] = 2;
  Outcome outcome = testing::all_reduce(ranks, inputs);
  CHECK(ranks[0]->report().encoded_bytes == 4);
  CHECK(ranks[1]->report().encoded_bytes == 8);
  CHECK(outcome.outputs[0][5] == 0);
  CHECK(outcome.outputs[0][6] == 0);
  CHECK(outcome.outputs[0][999] == 1);
  CHECK(ranks[1]->report().squared_norm == 53);
  CHECK(ranks[1]->report().squared_error == 37);
  CHECK_FALSE(ranks[0]->report().dense);
}

TEST_CASE("Strom's threshold: where codes would take longer than the vector, the vector goes, and says the same") {
  const std::size_t n = 100;
  const Inputs inputs = whole_inputs(1, n, 5);
  for (const bool slow_gather : {false, true}) {
    const auto ranks = testing::make_ranks("threshold", "tau=3", {n, 1}, 1);
    std::vector<float> output(n);
    run_alone(*ranks[0], {.input = inputs[0].data(), .output = output.data(), .elements = n},
              [&](const shoal::engine::Call& call) {
                return call.collective == shoal::plan::Collective::all_gather && slow_gather ? 2.0 : 1.0;
              });
    CHECK(ranks[0]->report().dense == slow_gather);
    const std::vector<float> left = residual(*ranks[0], n);
    for (std::size_t i = 0; i < n; ++i) {
      const float x = inputs[0][i];
      REQUIRE(output[i] == (x > 3 ? 3 : x < -3 ? -3 : 0));
      REQUIRE(output[i] + left[i] == x);
    }
  }
}

TEST_CASE("Sparse compressors: a million elements and three") {
  const std::size_t n = 1000003;
  for (const char* kind : {"dropping", "dgc", "randomk", "threshold"}) {
    const auto ranks = testing::make_ranks(kind, kind == std::string_view("threshold") ? "tau=7" : "density=0.001", {n, 1}, 2);
    const Inputs inputs = random_inputs(2, n, 3);
    for (int call = 0; call < 2; ++call) require_same_bits(testing::all_reduce(ranks, inputs));
    const Report& report = ranks[0]->report();
    CAPTURE(kind, report.selected);
    CHECK(report.selected > 300);
    CHECK(report.squared_error < report.squared_norm);
    CHECK(report.encoded_bytes * 200 < n * 4);
  }
}
