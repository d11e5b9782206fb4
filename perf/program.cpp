// SPDX-License-Identifier: Apache-2.0
#include "perf/program.h"

#include <fmt/format.h>
#include <shoal/shoal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "perf/baseline.h"
#include "perf/calibrate.h"
#include "perf/json_report.h"
#include "perf/output_file.h"
#include "perf/plot.h"
#include "perf/sweep.h"

namespace shoal::perf {
namespace {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// One write a line, so that lines of ranks do not mix.
void complain(const std::string& line) {
  const std::string text = line + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// A refusal concerns all ranks alike: only `speaks` says so.
int refuse(bool speaks, const std::string& why, int code) {
  if (speaks) complain("shoal-perf: " + why);
  return code;
}

// The result of --plot-with or --baseline; false after a refusal, which `code` then is.
bool read_earlier(const char* option, const std::string& path, Results& results, int& code) {
  auto read = read_results(path);
  if (const std::string* why = std::get_if<std::string>(&read)) {
    code = refuse(true, cli::refusal(option, path, *why), kRefusedOption);
    return false;
  }
  results = std::get<Results>(std::move(read));
  return true;
}

// Draws the runs; 0 or the exit code.
int draw_runs(const std::string& path, std::span<const Results> runs) {
  const std::string why = replace_file(path, plot(runs));
  return why.empty() ? kOk : refuse(true, cli::refusal("--plot", path, why), kInternalError);
}

class Program {
 public:
  Program(Options options, const shoalLaunch& launch, std::vector<std::string> command_line)
      : options_(std::move(options)),
        launch_(launch),
        per_process_(options_.threads * options_.ranks_per_thread),
        world_(launch.world * per_process_) {
    record_.arguments = std::move(command_line);
  }

  // Everything that can be refused before ranks meet. 0, or the exit code.
  int check_environment() {
    if (std::getenv("NCCL_TESTS_SPLIT") != nullptr || std::getenv("NCCL_TESTS_SPLIT_MASK") != nullptr) {
      return refuse(is_first(), "NCCL_TESTS_SPLIT: splitting the ranks into groups is not available: unset it", kNotImplemented);
    }
    if (const char* text = std::getenv("NCCL_TESTS_MIN_BW"); text != nullptr && *text != '\0') {
      char* end = nullptr;
      const double value = std::strtod(text, &end);
      if (*end != '\0' || !std::isfinite(value) || value < 0) {
        return refuse(is_first(), fmt::format("NCCL_TESTS_MIN_BW {}: is not a bandwidth in GB/s", text), kRefusedOption);
      }
      settings_.required_gbs = value;
    }
    const auto variable = [](const char* name) {
      const char* value = std::getenv(name);
      return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
    };
    if (options_.collective->blocks != nullptr) {
      const std::string wrong = read_traffic(variable, world_, options_.traffic);
      if (!wrong.empty()) return refuse(is_first(), wrong, kRefusedOption);
    }
    // A hook for tests: the check must find the element that this rank changes.
    if (const char* text = std::getenv("SHOAL_PERF_FLIP"); text != nullptr) {
      const auto rank = cli::parse_integer(text, 0, world_ - 1);
      if (rank.is_ok()) settings_.flip_rank = static_cast<int>(*rank);
    }
    const std::string why = check_against_machine(options_, world_, launch_.local_world * per_process_, available_memory());
    if (!why.empty()) return refuse(launch_.local_rank == 0, why, kRefusedOption);
    if (const int code = is_first() ? read_earlier_runs() : kOk; code != kOk) return code;
    if (options_.timeout_s > 0) {
      const auto milliseconds = static_cast<std::int64_t>(std::ceil(options_.timeout_s * 1e3));
      ::setenv("SHOAL_TIMEOUT_MS", fmt::format("{}", milliseconds).c_str(), 0);
    }
    return kOk;
  }

  int run() {
    std::optional<NewFile> json;
    if (is_first() && !options_.json_path.empty()) {
      json.emplace(options_.json_path);
      if (!json->error().empty()) {
        return refuse(true, cli::refusal("-J,--output_file", options_.json_path, json->error()), kRefusedOption);
      }
    }
    record_.start_time = timestamp();
    settings_.print = print;
    for (int thread = 0; thread < options_.threads; ++thread) {
      teams_.emplace_back(launch_.rank * per_process_ + thread * options_.ranks_per_thread, options_.ranks_per_thread, world_);
    }
    results_.resize(teams_.size());
    if (auto failure = meet()) {
      complain(failure->line);
      results_.front().failure = std::move(failure);
    } else {
      run_threads();
    }
    int code = conclude();
    if (json && !write_json(*json) && code == kOk) code = kInternalError;
    const int drawn = is_first() && !options_.plot_path.empty() ? draw() : kOk;
    return code != kOk ? code : drawn;
  }

 private:
  bool is_first() const { return launch_.rank == 0; }

  int read_earlier_runs() {
    int code = kOk;
    for (const std::string& path : options_.plot_with)
      if (!read_earlier("--plot-with", path, plotted_.emplace_back(), code)) return code;
    if (options_.baseline_path.empty() || !read_earlier("--baseline", options_.baseline_path, baseline_.emplace(), code))
      return code;
    const std::string why = check_comparable(*baseline_, results());
    return why.empty() ? kOk : refuse(true, cli::refusal("--baseline", options_.baseline_path, why), kRefusedOption);
  }

  // This run's, as far as it has come.
  Results results() const {
    return {.name = "this run",
            .collective = options_.collective->name,
            .world = world_,
            .rows = results_.empty() ? std::vector<Row>() : results_.front().rows};
  }

  int draw() {
    plotted_.insert(plotted_.begin(), results());
    return draw_runs(options_.plot_path, plotted_);
  }

  // 0 or the exit code.
  int compare_with_baseline() {
    const std::vector<Compared> compared = compare(*baseline_, results());
    print(comparison_text(compared, options_.baseline_path, options_.tolerance));
    return is_good(compared, options_.tolerance) ? kOk : kSlowerThanBaseline;
  }

  MaybeFailure meet() {
    if (const ncclResult_t result = shoalLaunchUniqueId(&id_); result != ncclSuccess) {
      return make_failure(result, "shoalLaunchUniqueId", fmt::format("{}", launch_.rank * per_process_));
    }
    return options_.parallel_init ? std::nullopt : Team::join(teams_, id_);
  }

  void run_threads() {
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < teams_.size(); ++i) others.emplace_back([this, i] { run_team(i); });
    run_team(0);
    for (std::thread& other : others) other.join();
  }

  void run_team(std::size_t i) {
    Team& team = teams_[i];
    MaybeFailure& failure = results_[i].failure;
    failure = start(i);
    if (!failure) results_[i] = run_sweep(options_, team, settings_);
    if (!failure) failure = team.leave();
    if (!failure) return;
    complain(failure->line);  // now, not at the end: other threads may still wait for their own failure
    team.abort();
  }

  MaybeFailure start(std::size_t i) {
    Team& team = teams_[i];
    if (options_.parallel_init) {
      if (auto failure = Team::join({&team, 1}, id_)) return failure;
    }
    if (options_.host_stream) {
      if (auto failure = team.make_streams()) return failure;
    }
    if (auto failure = team.allocate(buffer_bytes(options_, world_), options_.buffers)) return failure;
    std::vector<RankInfo> ranks;
    if (auto failure = team.introduce(ranks, launch_.rank * per_process_)) return failure;
    if (!team.has_rank_0()) return std::nullopt;
    ncclGetVersion(&record_.library_version);
    print(heading(options_, record_.library_version, ranks) + column_heading(options_));
    record_.ranks = std::move(ranks);
    return std::nullopt;
  }

  // The footer, and the exit code: the worst of this process.
  int conclude() {
    SweepResult& first = results_.front();
    int code = kOk;
    for (const SweepResult& result : results_) {
      if (!result.failure) continue;
      first.verdict.errors.push_back(result.failure->line);
      code = std::max(code, result.failure->exit_code);
    }
    if (code == kOk && !first.verdict.good()) code = kWrongResults;
    if (!is_first() || record_.ranks.empty()) return code;
    print(footer(options_, first.verdict));
    const int compared = baseline_ && code == kOk ? compare_with_baseline() : kOk;
    return code != kOk ? code : compared;
  }

  bool write_json(NewFile& file) {
    record_.end_time = timestamp();
    record_.environment = reportable_environment();
    record_.rows = results_.front().rows;
    record_.verdict = results_.front().verdict;
    if (file.write(json_text(options_, record_))) return true;
    complain(fmt::format("shoal-perf: {}: {}", file.path(), file.error()));
    return false;
  }

  Options options_;
  const shoalLaunch launch_;
  const int per_process_;  // ranks
  const int world_;
  SweepSettings settings_;
  ncclUniqueId id_ = {};
  std::vector<Team> teams_;           // a thread each
  std::vector<SweepResult> results_;  // a thread each
  // Rank 0's process.
  JsonRun record_;
  std::vector<Results> plotted_;  // earlier runs
  std::optional<Results> baseline_;
};

// --plot of earlier runs alone: no ranks are needed, and of several one draws.
int run_plot(const Options& options, const shoalLaunch& launch) {
  if (launch.rank != 0) return kOk;
  std::vector<Results> runs;
  int code = kOk;
  for (const std::string& path : options.plot_with)
    if (!read_earlier("--plot-with", path, runs.emplace_back(), code)) return code;
  return draw_runs(options.plot_path, runs);
}

MaybeFailure calibrate_team(Team& team, std::vector<RankInfo>& ranks, CalibrationFigures& figures) {
  ncclUniqueId id = {};
  if (const ncclResult_t result = shoalLaunchUniqueId(&id); result != ncclSuccess)
    return make_failure(result, "shoalLaunchUniqueId", fmt::format("{}", team.members().front().rank));
  if (auto failure = Team::join({&team, 1}, id)) return failure;
  if (auto failure = team.introduce(ranks, team.members().front().rank)) return failure;
  if (auto failure = calibrate(team, ranks, figures)) return failure;
  return team.leave();
}

int run_calibration(const Options& options, const shoalLaunch& launch) {
  const bool is_first = launch.rank == 0;
  const auto refuse_ranks = [&](const std::string& why) {
    return refuse(is_first, cli::refusal("--calibrate", options.calibration_path, why), kRefusedOption);
  };
  if (options.threads * options.ranks_per_thread != 1) return refuse_ranks("needs a process a rank: -t and -g must be 1");
  if (launch.world < 2) return refuse_ranks("needs at least 2 ranks, each a process: shoal-run -n 2 shoal-perf --calibrate ...");
  Team team(launch.rank, 1, launch.world);
  std::vector<RankInfo> ranks;
  CalibrationFigures figures;
  if (const MaybeFailure failure = calibrate_team(team, ranks, figures)) {
    complain(failure->line);
    return failure->exit_code;
  }
  if (!is_first) return kOk;
  const std::string text = calibration_text(figures, ranks, timestamp());
  print(text);
  const std::string why = replace_file(options.calibration_path, text);
  return why.empty() ? kOk : refuse(true, cli::refusal("--calibrate", options.calibration_path, why), kInternalError);
}

}  // namespace

int run_program(const std::string& program, const std::vector<std::string>& arguments) {
  shoalLaunch launch = {};
  if (const ncclResult_t result = shoalGetLaunch(&launch); result != ncclSuccess) {
    return refuse(true, ncclGetLastError(nullptr), kInvalidUsage);  // nobody knows who is rank 0
  }
  Options options;
  const cli::Outcome outcome = parse_options(program, arguments, options);
  if (!outcome.proceed) {
    if (outcome.is_help && launch.rank == 0) print(outcome.text);
    return outcome.is_help ? kOk : refuse(launch.rank == 0, outcome.text, outcome.exit_code);
  }
  if (options.task == Task::plot) return run_plot(options, launch);
  if (options.task == Task::calibrate) return run_calibration(options, launch);
  std::vector<std::string> command_line = {program};
  command_line.insert(command_line.end(), arguments.begin(), arguments.end());
  Program run(std::move(options), launch, std::move(command_line));
  const int code = run.check_environment();
  return code != kOk ? code : run.run();
}

}  // namespace shoal::perf
