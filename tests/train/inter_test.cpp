// SPDX-License-Identifier: Apache-2.0
#include "train/search/inter.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace shoal::train {
namespace {

using Stages = std::vector<StageQuestion>;

// Every cut of the layers from `first` on into stages on the devices from `device` on.
void for_each_cut(const InterProblem& problem, Stages& stages, std::size_t first, std::size_t device,
                  const std::function<void(Stages)>& what) {
  const std::size_t devices = problem.hosts * problem.ranks_per_host;
  if (first == problem.layers && device == devices) what(stages);
  if (first == problem.layers || device == devices) return;
  for (std::size_t last = first; last < problem.layers; ++last)
    for (std::size_t mesh = 0; mesh < problem.meshes.size(); ++mesh) {
      const Mesh& m = problem.meshes[mesh];
      const std::size_t host = device / problem.ranks_per_host, end = device + m.devices();
      const bool inside = m.hosts == 1 && (end - 1) / problem.ranks_per_host == host;
      const bool whole = m.hosts > 1 && device % problem.ranks_per_host == 0;
      if (end > devices || !(inside || whole)) continue;
      stages.push_back({.first = first, .last = last, .mesh = mesh, .device = device, .left = 0});
      for_each_cut(problem, stages, last + 1, end, what);
      stages.pop_back();
    }
}

struct Brute {
  double seconds = std::numeric_limits<double>::infinity();
  std::size_t cuts = 0;
};
Brute brute_force(const InterProblem& problem) {
  Brute brute;
  Stages stages;
  for_each_cut(problem, stages, 0, 0, [&](Stages cut) {
    for (std::size_t s = 0; s < cut.size(); ++s) cut[s].left = cut.size() - s;
    brute.seconds = std::min(brute.seconds, step_seconds(problem, cut));
    ++brute.cuts;
  });
  return brute;
}

// Random times, less on more devices and for fewer layers, on the whole; some stages fit only near the pipeline's end.
InterProblem random_problem(std::mt19937& random, std::size_t layers, std::size_t hosts, std::size_t per_host,
                            std::size_t steps) {
  InterProblem problem{.layers = layers,
                       .hosts = hosts,
                       .ranks_per_host = per_host,
                       .micro_batches = steps,
                       .meshes = meshes_of(hosts, per_host),
                       .stage_time = {}};
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t>, double> times;
  for (std::size_t first = 0; first < layers; ++first)
    for (std::size_t last = first; last < layers; ++last)
      for (std::size_t mesh = 0; mesh < problem.meshes.size(); ++mesh)
        for (std::size_t device = 0; device < hosts * per_host; ++device) {
          const double noise = 1 + static_cast<double>(random() % 1000) / 500;
          const std::size_t most_left = random() % 4 == 0 ? 2 : 8;
          for (std::size_t left = 1; left <= 8; ++left)
            times[{first, last, mesh, device, left}] = left > most_left
                                                           ? std::numeric_limits<double>::infinity()
                                                           : noise * static_cast<double>(last - first + 1) /
                                                                 std::sqrt(static_cast<double>(problem.meshes[mesh].devices()));
        }
  problem.stage_time = [times](const StageQuestion& s) { return times.at({s.first, s.last, s.mesh, s.device, s.left}); };
  return problem;
}

TEST_CASE("stages: the search finds what trying every cut finds, up to 6 layers on 4 devices") {
  std::mt19937 random(3);
  std::size_t cuts = 0;
  for (std::size_t layers = 1; layers <= 6; ++layers)
    for (const auto& [hosts, per_host] :
         {std::pair<std::size_t, std::size_t>{1, 1}, {1, 2}, {2, 1}, {1, 4}, {2, 2}, {4, 1}, {3, 1}})
      for (const std::size_t micro_batches : {1, 2, 5, 32}) {
        const InterProblem problem = random_problem(random, layers, hosts, per_host, micro_batches);
        INFO(layers << " layers, " << hosts << " hosts of " << per_host << ", " << micro_batches << " micro-batches");
        const Brute brute = brute_force(problem);
        cuts += brute.cuts;
        const std::optional<InterPlan> plan = best_stages(problem);
        REQUIRE(plan.has_value() == std::isfinite(brute.seconds));
        if (!plan) continue;
        CHECK(plan->seconds == Approx(brute.seconds).epsilon(1e-12));
        CHECK(step_seconds(problem, plan->stages) == plan->seconds);
      }
  CHECK(cuts > 1000);
}

TEST_CASE("stages: one micro-batch wants the fewest seconds together, many want the slowest stage fast") {
  // Two layers on two devices: one stage of 10 s, or two of 8 s.
  InterProblem problem{
      .layers = 2, .hosts = 1, .ranks_per_host = 2, .micro_batches = 1, .meshes = meshes_of(1, 2), .stage_time = {}};
  problem.stage_time = [](const StageQuestion& s) { return s.last > s.first ? 10.0 : 8.0; };
  CHECK(best_stages(problem)->seconds == 10);
  problem.micro_batches = 4;
  CHECK(best_stages(problem)->seconds == 2 * 8 + 3 * 8);
  CHECK(best_stages(problem)->stages.size() == 2);
}

TEST_CASE("stages: none where nothing fits; a skipped step costs no more than the step") {
  std::mt19937 random(4);
  InterProblem problem = random_problem(random, 6, 2, 2, 8);
  const double best = best_stages(problem)->seconds;
  problem.epsilon = 0.05;
  CHECK(best_stages(problem)->seconds <= best * 1.05);
  problem.stage_time = [](const StageQuestion&) { return std::numeric_limits<double>::infinity(); };
  CHECK_FALSE(best_stages(problem));
}

TEST_CASE("stages: meshes are powers of two inside a host, and whole hosts") {
  CHECK(meshes_of(2, 4) == std::vector<Mesh>{{1, 1}, {1, 2}, {1, 4}, {2, 4}});
  CHECK(meshes_of(3, 1) == std::vector<Mesh>{{1, 1}, {2, 1}, {3, 1}});
  CHECK(meshes_of(1, 6) == std::vector<Mesh>{{1, 1}, {1, 2}, {1, 4}, {1, 6}});
  CHECK(may_begin({1, 2}, 2, 4));
  CHECK(may_begin({1, 2}, 1, 4));
  CHECK_FALSE(may_begin({1, 2}, 3, 4));
  CHECK(may_begin({2, 4}, 4, 4));
  CHECK_FALSE(may_begin({2, 4}, 2, 4));
}

}  // namespace
}  // namespace shoal::train
