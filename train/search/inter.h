// SPDX-License-Identifier: Apache-2.0
// The outer level of Alpa's search (Zheng et al. 2022, section 5): layers are cut into stages and the devices into as many
// meshes, a stage a mesh, so that a step of B micro-batches,
//
//   sum_i t_i + (B - 1) max_i t_i,
//
// is least. For every possible value of max t, ascending, a dynamic program over (stages left, first layer, devices left) finds
// the least sum; it ends when B * max t alone is no better than what was found.
//
// Meshes are (1, 2^k) or whole hosts. They are taken in the order of the devices and lie inside a host or begin with one, so that
// a stage's place is known: this leaves out cuts that only another order of the stages would fit. Pure; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace shoal::train {

struct Mesh {
  std::size_t hosts = 1;
  std::size_t per_host = 1;

  std::size_t devices() const { return hosts * per_host; }
  friend bool operator==(const Mesh&, const Mesh&) = default;
};
std::vector<Mesh> meshes_of(std::size_t hosts, std::size_t ranks_per_host);
// Whether the mesh may begin with device `first` of such hosts.
bool may_begin(const Mesh& mesh, std::size_t first, std::size_t ranks_per_host);

// What a stage may be: layers [first, last] on meshes[mesh], which begins with device `device`; `left` stages from this one to
// the last.
struct StageQuestion {
  std::size_t first = 0, last = 0;
  std::size_t mesh = 0, device = 0;
  std::size_t left = 1;

  friend bool operator==(const StageQuestion&, const StageQuestion&) = default;
};

struct InterProblem {
  std::size_t layers = 1;
  std::size_t hosts = 1, ranks_per_host = 1;
  std::size_t micro_batches = 1;
  std::vector<Mesh> meshes;
  // [s] of a micro-batch, forward and backward; infinity: it does not fit. Asked more than once.
  std::function<double(const StageQuestion&)> stage_time;
  // Steps of max t smaller than this, as a share of it, are skipped: 0 finds the optimum.
  double epsilon = 0;
};

struct InterPlan {
  std::vector<StageQuestion> stages;
  double seconds = 0;
};

double step_seconds(const InterProblem& problem, const std::vector<StageQuestion>& stages);
// None if nothing fits.
std::optional<InterPlan> best_stages(const InterProblem& problem);

}  // namespace shoal::train
