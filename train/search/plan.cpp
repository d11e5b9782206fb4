// SPDX-License-Identifier: Apache-2.0
#include "train/search/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "train/error.h"

namespace shoal::train {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Of the model's units, [first, last].
struct Layer {
  std::size_t first = 0, last = 0;
};

std::vector<Layer> layers_of(const SearchModel& model, std::size_t groups) {
  const std::size_t blocks = model.layers, count = std::min(blocks, groups);
  std::vector<Layer> layers{{0, 0}};
  for (std::size_t g = 0; g < count; ++g) layers.push_back({1 + g * blocks / count, (g + 1) * blocks / count});
  layers.push_back({blocks + 1, blocks + 1});
  return layers;
}

// Plans of stages, each asked for once.
class Planner {
 public:
  Planner(const SearchQuestion& question, std::size_t micro_batches)
      : question_(question), layers_(layers_of(question.model, question.groups)), micro_batches_(micro_batches) {}

  std::optional<Plan> best() {
    return best(meshes_of(question_.cluster.hosts, question_.cluster.ranks_per_host),
                [this](const Mesh& mesh, const StageCase& stage) { return best_splits_of(mesh, stage); });
  }

  std::optional<Plan> uniform(const Mesh& mesh, IntraPlan::Degrees degrees) {
    return best({mesh}, [&](const Mesh&, const StageCase& stage) {
      return uniform_splits(question_.model, question_.cluster, mesh, degrees, stage);
    });
  }

  std::size_t layers() const { return layers_.size(); }

 private:
  template <typename Inner>
  std::optional<Plan> best(const std::vector<Mesh>& meshes, Inner inner) {
    std::map<std::tuple<Slice, std::size_t, std::size_t>, std::optional<IntraPlan>> answers;  // slice, mesh, in flight
    const auto answer = [&](const StageQuestion& stage) -> const std::optional<IntraPlan>& {
      const StageCase what = case_of(stage);
      const auto [found, added] = answers.try_emplace({what.slice, stage.mesh, what.in_flight});
      if (added) found->second = inner(meshes[stage.mesh], what);
      return found->second;
    };
    const InterProblem problem{.layers = layers_.size(),
                               .hosts = question_.cluster.hosts,
                               .ranks_per_host = question_.cluster.ranks_per_host,
                               .micro_batches = micro_batches_,
                               .meshes = meshes,
                               .stage_time =
                                   [&](const StageQuestion& stage) {
                                     const std::optional<IntraPlan>& plan = answer(stage);
                                     return plan ? plan->seconds + boundary_seconds(stage) : kNever;
                                   },
                               .epsilon = question_.epsilon};
    const std::optional<InterPlan> found = best_stages(problem);
    if (!found) return std::nullopt;
    Plan plan{.micro_batches = micro_batches_, .stages = {}, .seconds = found->seconds};
    for (const StageQuestion& stage : found->stages) {
      const IntraPlan& splits = *answer(stage);
      plan.stages.push_back({.first = layers_[stage.first].first,
                             .last = layers_[stage.last].last,
                             .mesh = meshes[stage.mesh],
                             .device = stage.device,
                             .inner = splits,
                             .seconds = problem.stage_time(stage),
                             .bytes = splits.bytes(case_of(stage).in_flight)});
    }
    return plan;
  }

  StageCase case_of(const StageQuestion& stage) const {
    const std::size_t first = layers_[stage.first].first, last = layers_[stage.last].last, head = question_.model.layers + 1;
    const bool has_embedding = first == 0, has_head = last == head;
    const std::size_t blocks = last - first + 1 - (has_embedding ? 1 : 0) - (has_head ? 1 : 0);
    return {.slice = {.embedding = has_embedding, .blocks = blocks, .head = has_head},
            .micro_batches = micro_batches_,
            .in_flight = std::min(micro_batches_, stage.left)};  // 1f1b
  }

  // Activations in and gradients out of the boundary before the stage, whole, over the wire where its first device meets the one
  // before.
  double boundary_seconds(const StageQuestion& stage) const {
    if (stage.first == 0) return 0;
    const SearchModel& model = question_.model;
    const bool crosses = stage.device % question_.cluster.ranks_per_host == 0;
    const Wire& wire = crosses ? question_.cluster.nics : question_.cluster.within;
    const double values = static_cast<double>(model.batch / micro_batches_ * model.length * model.width);
    return 2 * (wire.latency_s + values * model.bytes / wire.bandwidth_Bps);
  }

  // What is best without a limit is so wherever it fits: most stages need one program, however many micro-batches are in flight.
  std::optional<IntraPlan> best_splits_of(const Mesh& mesh, const StageCase& stage) {
    const auto [found, added] = roomy_.try_emplace({stage.slice, mesh.hosts, mesh.per_host});
    if (added) {
      SearchCluster roomy = question_.cluster;
      roomy.memory_bytes = kNever;
      found->second = best_splits(question_.model, roomy, mesh, stage);
    }
    if (found->second && found->second->bytes(stage.in_flight) <= question_.cluster.memory_bytes) return found->second;
    return best_splits(question_.model, question_.cluster, mesh, stage);
  }

  const SearchQuestion& question_;
  std::vector<Layer> layers_;
  std::size_t micro_batches_;
  std::map<std::tuple<Slice, std::size_t, std::size_t>, std::optional<IntraPlan>> roomy_;
};

std::vector<std::size_t> divisors(std::size_t number) {
  std::vector<std::size_t> all;
  for (std::size_t divisor = 1; divisor <= number; ++divisor)
    if (number % divisor == 0) all.push_back(divisor);
  return all;
}

void keep_faster(std::optional<Plan>& kept, std::optional<Plan> other) {
  if (other && (!kept || other->seconds < kept->seconds)) kept = std::move(other);
}

// Every grid whose stages have a mesh of their own size, and groups of tp inside a host or of whole hosts.
struct GridOnMesh {
  Grid grid;
  Mesh mesh;
};
std::vector<GridOnMesh> grids(const SearchCluster& cluster) {
  std::vector<GridOnMesh> all;
  for (const Mesh& mesh : meshes_of(cluster.hosts, cluster.ranks_per_host)) {
    if (cluster.ranks() % mesh.devices() != 0) continue;
    for (const std::size_t tp : divisors(mesh.devices()))
      if (mesh.hosts == 1 || mesh.per_host % tp == 0 || tp % mesh.per_host == 0)
        all.push_back({{.dp = mesh.devices() / tp, .tp = tp, .pp = cluster.ranks() / mesh.devices()}, mesh});
  }
  return all;
}

}  // namespace

std::optional<Grid> grid_of(const Plan& plan) {
  std::optional<IntraPlan::Degrees> all;
  for (const PlannedStage& stage : plan.stages) {
    const std::optional<IntraPlan::Degrees> here = stage.inner.degrees();
    if (!here || (all && *all != *here)) return std::nullopt;
    all = here;
  }
  if (!all) return std::nullopt;
  return Grid{.dp = all->dp, .tp = all->tp, .pp = plan.stages.size()};
}

SearchAnswer search_plan(const SearchQuestion& question) {
  if (question.micro_batches != 0 && question.model.batch % question.micro_batches != 0)
    throw failure(Exit::usage, "--micro-batches {} do not divide --batch {}", question.micro_batches, question.model.batch);
  std::vector<std::size_t> counts{question.micro_batches};
  if (question.micro_batches == 0) counts = divisors(question.model.batch);

  SearchAnswer answer;
  const std::vector<GridOnMesh> all_grids = grids(question.cluster);
  std::vector<std::optional<Plan>> uniform(all_grids.size());
  for (const std::size_t count : counts) {
    Planner planner(question, count);
    keep_faster(answer.best, planner.best());
    for (std::size_t g = 0; g < all_grids.size(); ++g) {
      const auto& [grid, mesh] = all_grids[g];
      if (grid.pp <= planner.layers()) keep_faster(uniform[g], planner.uniform(mesh, {.dp = grid.dp, .tp = grid.tp}));
    }
  }
  for (std::size_t g = 0; g < all_grids.size(); ++g)
    if (uniform[g]) answer.uniform.push_back({all_grids[g].grid, std::move(*uniform[g])});
  std::ranges::stable_sort(answer.uniform, {}, [](const UniformPlan& each) { return each.plan.seconds; });
  return answer;
}

}  // namespace shoal::train
