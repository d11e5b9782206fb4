// SPDX-License-Identifier: Apache-2.0
// shoal-plan check: proves one plan set, sweeps the table of algorithms, or tests the checker with spoiled plans.
#include "plan/checker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "plan/mutations.h"
#include "plan/sweep.h"
#include "tools/plan/arguments.h"

namespace shoal::plan_tool {
namespace {

using nlohmann::ordered_json;
using namespace plan;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Options {
  Target target;
  bool all = false, mutations = false, no_large = false, json = false;
  int jobs = 0;
  std::int32_t dense = 64, credits = 0;
};

// The algorithms that are asked for, by number in the table.
Result<std::vector<const algorithms::Algorithm*>> chosen(const Options& options) {
  std::vector<const algorithms::Algorithm*> some;
  if (options.target.collective && !options.target.algorithm.empty()) {
    const auto one = algorithm_of(options.target);
    if (!one.is_ok()) return one.status();
    some.push_back(*one);
    return some;
  }
  if (!options.target.algorithm.empty())
    return fail(Code::invalid_argument, "--algorithm {}: of which COLLECTIVE?", options.target.algorithm);
  for (const algorithms::Algorithm& each : algorithms::all())
    if (!options.target.collective || each.collective == *options.target.collective) some.push_back(&each);
  return some;
}

struct Swept {
  SweepResult result;
  double seconds = 0;
  bool done = false;
};

// Sweeps several algorithms at a time, one thread each, and calls `report` in the order of the table as soon as it can.
void sweep_each(const std::vector<const algorithms::Algorithm*>& some, SweepOptions sweeping, int jobs,
                const std::function<void(const algorithms::Algorithm&, const Swept&)>& report) {
  std::vector<Swept> all(some.size());
  std::mutex mutex;  // of `all` and of `reported`
  std::size_t reported = 0;
  std::atomic<std::size_t> next = 0;
  sweeping.threads = 1;
  const auto work = [&] {
    for (std::size_t a = next++; a < some.size(); a = next++) {
      const Clock::time_point begin = Clock::now();
      const Subject subject = subject_of(*some[a]);
      SweepResult result = sweep({&subject, 1}, sweeping);
      const std::lock_guard lock(mutex);
      all[a] = {std::move(result), seconds_since(begin), true};
      for (; reported < all.size() && all[reported].done; ++reported) report(*some[reported], all[reported]);
    }
  };
  const std::size_t threads = jobs > 0 ? static_cast<std::size_t>(jobs) : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < std::min(threads, some.size()); ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

Ending sweep_all(const std::vector<const algorithms::Algorithm*>& some, const Options& options) {
  SweepOptions sweeping{.dense = options.dense};
  if (options.no_large) sweeping.sampled.clear();
  const Clock::time_point start = Clock::now();
  SweepResult total;
  ordered_json rows = ordered_json::array();
  if (!options.json)
    fmt::print("worlds 1 to {}{}\n\n{:40} {:>9} {:>9} {:>7} {:>9}\n", sweeping.dense,
               sweeping.sampled.empty()
                   ? ""
                   : fmt::format(", and {} sampled ones up to {}", sweeping.sampled.size(), sweeping.sampled.back()),
               "algorithm", "plan sets", "refused", "wrong", "seconds");
  sweep_each(some, sweeping, options.jobs, [&](const algorithms::Algorithm& algorithm, const Swept& swept) {
    const SweepResult& result = swept.result;
    const std::string name = title(subject_of(algorithm));
    total.sets += result.sets;
    total.refused += result.refused;
    total.wrong += result.wrong;
    total.left_out.insert(total.left_out.end(), result.left_out.begin(), result.left_out.end());
    if (options.json) {
      rows.push_back({{"algorithm", name},
                      {"sets", result.sets},
                      {"refused", result.refused},
                      {"wrong", result.wrong},
                      {"seconds", swept.seconds},
                      {"left_out", result.left_out},
                      {"failures", result.failures}});
      return;
    }
    fmt::print("{:40} {:>9} {:>9} {:>7} {:>9.2f}\n", name, result.sets, result.refused, result.wrong, swept.seconds);
    for (const std::string& failure : result.failures) fmt::print("  wrong: {}\n", failure);
    std::fflush(stdout);
  });
  if (options.json) {
    const ordered_json json = {{"sets", total.sets},
                               {"refused", total.refused},
                               {"wrong", total.wrong},
                               {"seconds", seconds_since(start)},
                               {"algorithms", std::move(rows)}};
    fmt::print("{}\n", json.dump(2));
  } else {
    if (!total.left_out.empty()) fmt::print("\nleft out:\n");
    for (const std::string& each : total.left_out) fmt::print("  {}\n", each);
    fmt::print("\n{} algorithms, {} plan sets, {} of them refused by their algorithm, {} wrong, {} left out, {:.1f} s\n",
               some.size(), total.sets, total.refused, total.wrong, total.left_out.size(), seconds_since(start));
  }
  return total.wrong == 0 ? Ending{} : Ending{kFailed, fmt::format("{} plan sets are wrong", total.wrong)};
}

Ending mutate_all(const std::vector<const algorithms::Algorithm*>& some, const Options& options) {
  std::vector<Subject> subjects;
  for (const algorithms::Algorithm* algorithm : some) subjects.push_back(subject_of(*algorithm));
  const std::vector<MutationRow> rows = mutate(subjects, {.threads = options.jobs});
  std::int64_t applied = 0, caught = 0;
  ordered_json json = ordered_json::array();
  for (const MutationRow& row : rows) {
    ordered_json counts = ordered_json::array();
    for (std::size_t m = 0; m < row.counts.size(); ++m) {
      applied += row.counts[m].applied;
      caught += row.counts[m].caught;
      if (row.counts[m].applied > 0)
        counts.push_back(
            {{"mutation", mutation_names()[m]}, {"applied", row.counts[m].applied}, {"caught", row.counts[m].caught}});
    }
    json.push_back({{"algorithm", row.subject}, {"mutations", std::move(counts)}, {"survivors", row.survivors}});
  }
  if (options.json) {
    const ordered_json whole = {{"applied", applied}, {"caught", caught}, {"algorithms", std::move(json)}};
    fmt::print("{}\n", whole.dump(2));
  } else {
    fmt::print("{}", mutation_table(rows));
    for (const MutationRow& row : rows)
      for (const std::string& survivor : row.survivors) fmt::print("  survived: {}\n", survivor);
    fmt::print("\n{} plans spoiled, {} caught\n", applied, caught);
  }
  return applied == caught ? Ending{} : Ending{kFailed, fmt::format("{} spoiled plans were not caught", applied - caught)};
}

Status check_one(const algorithms::Algorithm& algorithm, const Options& options) {
  const auto plans = plans_of(algorithm, options.target.request());
  if (!plans.is_ok()) return plans.status();
  if (options.credits == 0) return check_all_modes(*plans);
  CheckOptions with{.credits_delta = options.credits - plans->front().credits};
  return plan::check(*plans, with);
}

Ending check_world(const std::vector<const algorithms::Algorithm*>& some, const Options& options) {
  ordered_json rows = ordered_json::array();
  int wrong = 0;
  for (const algorithms::Algorithm* algorithm : some) {
    const Status status = check_one(*algorithm, options);
    const bool refused = status.code() == Code::invalid_usage;
    if (refused && some.size() == 1) return usage(status);
    wrong += status.is_ok() || refused ? 0 : 1;
    const std::string_view result = status.is_ok() ? "right" : refused ? "refused" : "wrong";
    if (options.json)
      rows.push_back({{"algorithm", title(subject_of(*algorithm))},
                      {"world", options.target.world},
                      {"result", result},
                      {"text", status.text()}});
    else
      fmt::print("{}, world {}: {}{}\n", title(subject_of(*algorithm)), options.target.world, result,
                 status.is_ok() ? "" : fmt::format(": {}", status.text()));
  }
  if (options.json) fmt::print("{}\n", rows.dump(2));
  return wrong == 0 ? Ending{} : Ending{kFailed, fmt::format("{} of {} plan sets are wrong", wrong, some.size())};
}

}  // namespace

Ending check(const Words& words) {
  Options options;
  cli::CommandLine line =
      command_line("check", "proves plans: results, memory, messages and the absence of deadlock, for every timing.",
                   "COLLECTIVE [--algorithm A] [--world N] [OPTIONS]\n       shoal-plan check --all | --mutations [COLLECTIVE] "
                   "[--algorithm A] [OPTIONS]");
  take_collective(line, options.target);
  take_algorithm(line, options.target);
  take_world(line, options.target);
  line.integer("--credits", options.credits, 1, "Prove it with links of N messages instead of what the plan declares", 1 << 20);
  line.flag("--all", options.all, "Sweep worlds, roots and groups");
  line.integer("--dense", options.dense, 1, "With --all: every world up to N", 4096);
  line.flag("--no-large", options.no_large, "With --all: without the sampled worlds above");
  line.flag("--mutations", options.mutations, "Spoil plans in every way and count what the checker catches");
  line.integer("-j,--jobs", options.jobs, 1, "Threads; else as many as there are processors", 1024);
  line.flag("--json", options.json, "As JSON");
  if (const auto ending = parse(line, words)) return *ending;
  if (options.all && options.mutations) return {kUsage, "--mutations: not together with --all"};
  const auto some = chosen(options);
  if (!some.is_ok()) return usage(some.status());
  if (options.all) return sweep_all(*some, options);
  if (options.mutations) return mutate_all(*some, options);
  if (Status s = complete(options.target); !s.is_ok()) return usage(s);
  if (options.target.world > 4096) return {kUsage, fmt::format("--world {}: at most 4096 are proven", options.target.world)};
  return check_world(*some, options);
}

}  // namespace shoal::plan_tool
