// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/pipeline_plan.h"

#include <fmt/ranges.h>

#include <limits>
#include <numeric>

#include "train/error.h"

namespace shoal::train {
namespace {

std::vector<UnitRange> split_as_told(std::span<const std::size_t> split, std::size_t units, const ScheduleShape& shape) {
  const std::size_t slices = shape.stages * shape.chunks, sum = std::accumulate(split.begin(), split.end(), std::size_t{0});
  if (split.size() != slices)
    throw failure(Exit::usage, "--split {}: {} numbers, but {} stages of {} chunks are {} slices", fmt::join(split, ","),
                  split.size(), shape.stages, shape.chunks, slices);
  if (sum != units)
    throw failure(Exit::usage, "--split {}: these are {} units, but the model has {} (embedding, {} blocks, head)",
                  fmt::join(split, ","), sum, units, units - 2);
  std::vector<UnitRange> ranges;
  for (const std::size_t count : split) {
    const std::size_t first = ranges.empty() ? 0 : ranges.back().last;
    if (count == 0) throw failure(Exit::usage, "--split {}: a slice of 0 units, at least 1", fmt::join(split, ","));
    ranges.push_back({first, first + count});
  }
  return ranges;
}

}  // namespace

std::vector<std::size_t> unit_parameters(const GptShape& shape) {
  const std::size_t d = shape.width, table = shape.vocabulary * d;
  std::vector<std::size_t> all(shape.units(), 4 * d * d + 2 * d * shape.hidden + shape.hidden + 9 * d);
  all.front() = table;
  all.back() = table + 2 * d;
  return all;
}

std::vector<UnitRange> split_evenly(std::span<const std::size_t> weights, std::size_t slices) {
  const std::size_t units = weights.size();
  if (units < slices)
    throw failure(Exit::usage, "{} units (embedding, {} blocks, head) do not go over {} slices: each needs at least one", units,
                  units - 2, slices);
  std::vector<double> before(units + 1, 0);  // sum of the weights before
  for (std::size_t u = 0; u < units; ++u) before[u + 1] = before[u] + static_cast<double>(weights[u]);

  // best[u]: the least sum for the first u units in as many slices as there were rounds; cut[s][u]: where its last slice begins.
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> best(units + 1, kNever);
  best[0] = 0;
  std::vector<std::vector<std::size_t>> cut;
  for (std::size_t s = 0; s < slices; ++s) {
    std::vector<double> next(units + 1, kNever);
    cut.emplace_back(units + 1, 0);
    for (std::size_t u = s + 1; u <= units; ++u)
      for (std::size_t first = s; first < u; ++first) {
        const double weight = before[u] - before[first], sum = best[first] + weight * weight;
        if (sum < next[u]) {
          next[u] = sum;
          cut[s][u] = first;
        }
      }
    best = std::move(next);
  }
  std::vector<UnitRange> ranges(slices);
  std::size_t last = units;
  for (std::size_t s = slices; s-- > 0; last = ranges[s].first) ranges[s] = {cut[s][last], last};
  return ranges;
}

PipelinePlan plan_pipeline(const GptShape& model, const PipelineChoice& choice, std::size_t stages, std::size_t sequences) {
  const ScheduleShape shape{
      .kind = choice.kind, .stages = stages, .micro_batches = choice.micro_batches, .chunks = choice.chunks};
  PipelinePlan plan{.schedule = make_schedule(shape), .slices = {}, .recompute = choice.recompute};
  if (sequences == 0 || sequences % shape.micro_batches != 0)
    throw failure(Exit::usage, "{} sequences a step do not divide into --micro-batches {}", sequences, shape.micro_batches);
  plan.slices = choice.split.empty() ? split_evenly(unit_parameters(model), stages * shape.chunks)
                                     : split_as_told(choice.split, model.units(), shape);
  return plan;
}

}  // namespace shoal::train
