// SPDX-License-Identifier: Apache-2.0
#include "train/search/inter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace shoal::train {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A stage of the table: its question and its answer.
struct Candidate {
  StageQuestion stage;
  double seconds = 0;
};

class Search {
 public:
  explicit Search(const InterProblem& problem)
      : problem_(problem),
        devices_(problem.hosts * problem.ranks_per_host),
        most_stages_(std::min(devices_, problem.layers)),
        candidates_((most_stages_ + 1) * problem.layers * devices_) {
    ask();
  }

  std::optional<InterPlan> best() {
    const double steps = static_cast<double>(problem_.micro_batches);
    std::optional<InterPlan> best;
    double last = 0;
    for (const double most : seconds_) {
      if (best && steps * most >= best->seconds) break;
      if (last > 0 && most < last * (1 + problem_.epsilon) && most != *seconds_.rbegin()) continue;
      last = most;
      for (const std::vector<StageQuestion>& stages : least_sums(most)) {
        const double seconds = step_seconds(problem_, stages);
        if (!best || seconds < best->seconds) best = {.stages = stages, .seconds = seconds};
      }
    }
    return best;
  }

 private:
  std::size_t at(std::size_t left, std::size_t first, std::size_t device) const {
    return (left * problem_.layers + first) * devices_ + device;
  }

  void ask() {
    for (std::size_t left = 1; left <= most_stages_; ++left)
      for (std::size_t first = 0; first < problem_.layers; ++first)
        for (std::size_t device = 0; device < devices_; ++device)
          for (std::size_t mesh = 0; mesh < problem_.meshes.size(); ++mesh) {
            if (!may_begin(problem_.meshes[mesh], device, problem_.ranks_per_host)) continue;
            if (device + problem_.meshes[mesh].devices() > devices_) continue;
            for (std::size_t end = first; end < problem_.layers; ++end) ask({first, end, mesh, device, left});
          }
  }

  void ask(const StageQuestion& stage) {
    const bool all = stage.last + 1 == problem_.layers, all_devices = stage.device + mesh(stage).devices() == devices_;
    if ((stage.left == 1) != all || all != all_devices) return;  // the last stage, and only it, ends both
    const double seconds = problem_.stage_time(stage);
    if (!std::isfinite(seconds)) return;
    candidates_[at(stage.left, stage.first, stage.device)].push_back({stage, seconds});
    seconds_.insert(seconds);
  }

  const Mesh& mesh(const StageQuestion& stage) const { return problem_.meshes[stage.mesh]; }

  // For each number of stages the cut with the least sum of stages of at most `most` seconds, if there is one.
  std::vector<std::vector<StageQuestion>> least_sums(double most) const {
    std::vector<double> sum(candidates_.size(), kNever);
    std::vector<const Candidate*> choice(candidates_.size(), nullptr);
    for (std::size_t left = 1; left <= most_stages_; ++left)
      for (std::size_t first = 0; first < problem_.layers; ++first)
        for (std::size_t device = 0; device < devices_; ++device)
          for (const Candidate& candidate : candidates_[at(left, first, device)]) {
            if (candidate.seconds > most) continue;
            const double all = candidate.seconds + (left == 1 ? 0 : sum[after(candidate.stage)]);
            if (all < sum[at(left, first, device)]) {
              sum[at(left, first, device)] = all;
              choice[at(left, first, device)] = &candidate;
            }
          }
    std::vector<std::vector<StageQuestion>> cuts;
    for (std::size_t stages = 1; stages <= most_stages_; ++stages) {
      if (choice[at(stages, 0, 0)] == nullptr) continue;
      std::vector<StageQuestion>& cut = cuts.emplace_back();
      for (std::size_t place = at(stages, 0, 0); cut.size() < stages; place = after(cut.back())) {
        cut.push_back(choice[place]->stage);
        if (cut.size() == stages) break;
      }
    }
    return cuts;
  }

  // The table's place of the stage after that one.
  std::size_t after(const StageQuestion& stage) const {
    return at(stage.left - 1, stage.last + 1, stage.device + mesh(stage).devices());
  }

  const InterProblem& problem_;
  std::size_t devices_, most_stages_;
  std::vector<std::vector<Candidate>> candidates_;  // [left][first][device]
  std::set<double> seconds_;                        // of all candidates
};

}  // namespace

std::vector<Mesh> meshes_of(std::size_t hosts, std::size_t ranks_per_host) {
  std::vector<Mesh> meshes;
  for (std::size_t devices = 1; devices < ranks_per_host; devices *= 2) meshes.push_back({1, devices});
  for (std::size_t n = 1; n <= hosts; ++n) meshes.push_back({n, ranks_per_host});
  return meshes;
}

bool may_begin(const Mesh& mesh, std::size_t first, std::size_t ranks_per_host) {
  const std::size_t local = first % ranks_per_host;
  return mesh.hosts == 1 ? local + mesh.per_host <= ranks_per_host : local == 0;
}

double step_seconds(const InterProblem& problem, const std::vector<StageQuestion>& stages) {
  double sum = 0, most = 0;
  for (const StageQuestion& stage : stages) {
    const double seconds = problem.stage_time(stage);
    sum += seconds;
    most = std::max(most, seconds);
  }
  return sum + (static_cast<double>(problem.micro_batches) - 1) * most;
}

std::optional<InterPlan> best_stages(const InterProblem& problem) { return Search(problem).best(); }

}  // namespace shoal::train
