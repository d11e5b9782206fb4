// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "plan/checker.h"

namespace shoal::plan {
namespace {

struct Job {
  const Subject* subject;
  std::int32_t world, root, group;
  bool sampled;
};

std::string title(const Job& job) {
  std::string text = fmt::format("{}, world {}", title(*job.subject), job.world);
  if (has_root(job.subject->collective)) text += fmt::format(", root {}", job.root);
  if (job.group != 0) text += fmt::format(", groups of {}", job.group);
  return text;
}

Plan build(const Job& job, std::int32_t rank) {
  return job.subject->build(
      {.collective = job.subject->collective, .world = {job.world}, .rank = {rank}, .root = {job.root}, .group = job.group});
}

// The groupings of a world that lead to different plans.
std::vector<std::int32_t> groups_of(Job job) {
  std::vector<std::int32_t> groups{0};
  const Plan ungrouped = build(job, 0);
  for (job.group = 2; job.group < job.world; ++job.group) {
    if (job.world % job.group != 0 || (job.sampled && job.group != 8)) continue;
    if (!same_program(build(job, 0), ungrouped)) groups.push_back(job.group);
  }
  return groups;
}

std::vector<Job> jobs_of(std::span<const Subject> subjects, const SweepOptions& options) {
  std::vector<Job> jobs;
  const auto add = [&](const Subject& subject, std::int32_t world, bool sampled) {
    std::vector<std::int32_t> roots{0};
    if (has_root(subject.collective))
      for (std::int32_t r = 1; r < world; ++r)
        if (!sampled || r == 1 || r == world - 1) roots.push_back(r);
    for (const std::int32_t group : groups_of({&subject, world, 0, 0, sampled}))
      for (const std::int32_t root : roots) jobs.push_back({&subject, world, root, group, sampled});
  };
  for (const Subject& subject : subjects) {
    for (std::int32_t world = 1; world <= options.dense; ++world) add(subject, world, false);
    for (const std::int32_t world : options.sampled)
      if (world > options.dense) add(subject, world, true);
  }
  // Large ones first, so that no thread is left with one at the end.
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.world > b.world; });
  return jobs;
}

struct Size {
  std::int64_t chunks = 0;  // moved
  std::size_t bytes = 0;    // of the steps
};
Size size_of(const Plan& plan) {
  Size size;
  for (const Lane& lane : plan.lanes)
    for (const Loop& loop : lane.loops) {
      size.bytes += loop.steps.size() * sizeof(Step);
      for (const Step& step : loop.steps)
        if (step.op != Op::send && step.op != Op::signal)  // its receiver counts
          size.chunks += std::int64_t{std::max(step.source.size, step.target.size)} * std::max(0, loop.iterations);
    }
  return size;
}

class Sweep {
 public:
  Sweep(std::span<const Subject> subjects, const SweepOptions& options) : options_(options), jobs_(jobs_of(subjects, options)) {
    for (const std::int32_t world : options.sampled) largest_ = std::max(largest_, world);
  }

  SweepResult whole() {
    const unsigned wanted =
        options_.threads > 0 ? static_cast<unsigned>(options_.threads) : std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> threads;
    for (unsigned t = 1; t < wanted; ++t) threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
    std::vector<std::string>& out = result_.left_out;  // once for all roots and groups
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return std::move(result_);
  }

 private:
  void work() {
    for (std::size_t j = next_++; j < jobs_.size(); j = next_++) one(jobs_[j]);
  }

  void one(const Job& job) {
    std::vector<Plan> plans;
    Size total;
    const std::int64_t budget = job.world == largest_ ? options_.largest_budget : options_.budget;
    for (std::int32_t r = 0; r < job.world; ++r) {
      plans.push_back(build(job, r));
      if (!job.sampled) continue;
      const Size size = size_of(plans.back());
      total = {total.chunks + size.chunks, total.bytes + size.bytes};
      if (total.chunks > budget) return leave_out(job, fmt::format("more than {} chunks", budget));
      if (total.bytes > kPlanBytes) return leave_out(job, fmt::format("more than {} MiB of steps", kPlanBytes >> 20));
    }
    const Status status = job.sampled ? check(plans, {.slices = 1}) : check_all_modes(plans);
    const std::lock_guard lock(mutex_);
    ++result_.sets;
    if (!plans[0].refusal.empty()) ++result_.refused;
    if (status.is_ok()) return;
    ++result_.wrong;
    if (result_.failures.size() < options_.most_failures)
      result_.failures.push_back(fmt::format("{}: {}", title(job), status.text()));
  }

  void leave_out(const Job& job, const std::string& why) {
    const std::lock_guard lock(mutex_);
    result_.left_out.push_back(fmt::format("{}, world {}: {}", title(*job.subject), job.world, why));
  }

  const SweepOptions& options_;
  const std::vector<Job> jobs_;
  std::int32_t largest_ = 0;  // sampled world
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;  // guards result_
  SweepResult result_;
};

}  // namespace

SweepResult sweep(std::span<const Subject> subjects, const SweepOptions& options) { return Sweep(subjects, options).whole(); }

}  // namespace shoal::plan
