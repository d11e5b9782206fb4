// SPDX-License-Identifier: Apache-2.0
#include "perf/program.h"

#include <fmt/format.h>
#include <shoal/shoal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "perf/json_report.h"
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
    // A hook for tests: the check must find the element that this rank changes.
    if (const char* text = std::getenv("SHOAL_PERF_FLIP"); text != nullptr) {
      const auto rank = cli::parse_integer(text, 0, world_ - 1);
      if (rank.is_ok()) settings_.flip_rank = static_cast<int>(*rank);
    }
    const std::string why = check_against_machine(options_, world_, launch_.local_world * per_process_, available_memory());
    if (!why.empty()) return refuse(launch_.local_rank == 0, why, kRefusedOption);
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
    const int code = conclude();
    if (!json || (write_json(*json) && code == kOk)) return code;
    return code != kOk ? code : kInternalError;
  }

 private:
  bool is_first() const { return launch_.rank == 0; }

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
    if (auto failure = team.allocate(buffer_bytes(options_, world_))) return failure;
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
    if (is_first() && !record_.ranks.empty()) print(footer(options_, first.verdict));
    return code;
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

  const Options options_;
  const shoalLaunch launch_;
  const int per_process_;  // ranks
  const int world_;
  SweepSettings settings_;
  ncclUniqueId id_ = {};
  std::vector<Team> teams_;           // a thread each
  std::vector<SweepResult> results_;  // a thread each
  JsonRun record_;                    // rank 0's process
};

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
  std::vector<std::string> command_line = {program};
  command_line.insert(command_line.end(), arguments.begin(), arguments.end());
  Program run(std::move(options), launch, std::move(command_line));
  const int code = run.check_environment();
  return code != kOk ? code : run.run();
}

}  // namespace shoal::perf
