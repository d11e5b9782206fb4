// SPDX-License-Identifier: Apache-2.0
// Which units go to which slice, against all ways of cutting; what does not fit together, in words that name both numbers.
#include "train/parallel/pipeline_plan.h"

#include <catch2/catch.hpp>
#include <functional>
#include <random>

#include "train/error.h"

namespace shoal::train {
namespace {

double squares(std::span<const std::size_t> weights, std::span<const UnitRange> ranges) {
  double sum = 0;
  for (const UnitRange& range : ranges) {
    double weight = 0;
    for (std::size_t u = range.first; u < range.last; ++u) weight += static_cast<double>(weights[u]);
    sum += weight * weight;
  }
  return sum;
}

// The least of all ways to cut what begins at `first` into `slices`.
double least_squares(std::span<const std::size_t> weights, std::size_t first, std::size_t slices) {
  if (slices == 0) return first == weights.size() ? 0 : INFINITY;
  double least = INFINITY, weight = 0;
  for (std::size_t last = first + 1; last <= weights.size(); ++last) {
    weight += static_cast<double>(weights[last - 1]);
    least = std::min(least, weight * weight + least_squares(weights, last, slices - 1));
  }
  return least;
}

std::string refusal(const GptShape& model, const PipelineChoice& choice, std::size_t stages, std::size_t sequences) {
  try {
    plan_pipeline(model, choice, stages, sequences);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("pipeline: slices cover all units in order, each one at least, as evenly as any way of cutting") {
  std::mt19937 engine(3);
  for (std::size_t units = 1; units <= 9; ++units)
    for (std::size_t slices = 1; slices <= units; ++slices) {
      CAPTURE(units, slices);
      std::vector<std::size_t> weights(units);
      for (std::size_t& each : weights) each = engine() % 20;
      const std::vector<UnitRange> ranges = split_evenly(weights, slices);
      REQUIRE(ranges.size() == slices);
      CHECK(ranges.front().first == 0);
      CHECK(ranges.back().last == units);
      for (std::size_t s = 0; s < slices; ++s) {
        CHECK(ranges[s].count() >= 1);
        if (s > 0) CHECK(ranges[s].first == ranges[s - 1].last);
      }
      CHECK(squares(weights, ranges) == least_squares(weights, 0, slices));
    }
}

TEST_CASE("pipeline: unit parameters add up to the model's, and a tied table counts on both ends") {
  GptShape shape{.vocabulary = 11, .width = 8, .heads = 2, .layers = 3, .hidden = 12};
  const auto sum = [&] {
    std::size_t all = 0;
    for (const std::size_t each : unit_parameters(shape)) all += each;
    return all;
  };
  CHECK(sum() == parameters_of(shape));
  shape.tied = true;
  CHECK(sum() == parameters_of(shape) + 11 * 8);
}

TEST_CASE("pipeline: slices are dealt to the stages in turn, and a split is taken as told") {
  const GptShape model{.width = 8, .heads = 2, .layers = 4, .hidden = 12};
  const PipelinePlan plan =
      plan_pipeline(model, {.kind = ScheduleKind::interleaved, .micro_batches = 2, .chunks = 2, .split = {1, 2, 2, 1}}, 2, 4);
  CHECK(plan.units(0, 0).first == 0);
  CHECK(plan.units(1, 0).first == 1);
  CHECK(plan.units(0, 1).first == 3);
  CHECK(plan.units(1, 1).first == 5);
  CHECK(plan.units(1, 1).last == 6);
}

TEST_CASE("pipeline: what does not fit together is refused by both numbers") {
  using Catch::Matchers::Contains;
  const GptShape model{.width = 8, .heads = 2, .layers = 2, .hidden = 12};
  CHECK_THAT(refusal(model, {}, 5, 8), Contains("4 units (embedding, 2 blocks, head)") && Contains("5 slices"));
  CHECK_THAT(refusal(model, {.micro_batches = 3}, 2, 8), Contains("8 sequences") && Contains("--micro-batches 3"));
  CHECK_THAT(refusal(model, {.kind = ScheduleKind::interleaved, .micro_batches = 4, .chunks = 2}, 3, 8),
             Contains("--micro-batches 4") && Contains("3 stages"));
  CHECK_THAT(refusal(model, {.chunks = 2}, 2, 8), Contains("--chunks 2") && Contains("1f1b"));
  CHECK_THAT(refusal(model, {.split = {2, 1, 1}}, 2, 8), Contains("3 numbers") && Contains("2 slices"));
  CHECK_THAT(refusal(model, {.split = {2, 1}}, 2, 8), Contains("3 units") && Contains("the model has 4"));
  CHECK_THAT(refusal(model, {.split = {4, 0}}, 2, 8), Contains("a slice of 0 units"));
  CHECK(refusal(model, {}, 4, 8).empty());
}

}  // namespace shoal::train
