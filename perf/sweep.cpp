// SPDX-License-Identifier: Apache-2.0
#include "perf/sweep.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>

namespace shoal::perf {
namespace {

// State of one sweep: what rows say, and how to go on.
class Sweep {
 public:
  Sweep(const Options& options, Team& team, const SweepSettings& settings)
      : options_(options), team_(team), settings_(settings), measurer_(options, team, settings.flip_rank) {}

  SweepResult run() {
    result_.verdict.required_gbs = settings_.required_gbs;
    result_.failure = all_cycles();
    result_.verdict.average_bus_gbs = halves_ > 0 ? bus_sum_ / static_cast<double>(halves_) : 0;
    if (!result_.failure && options_.memory) result_.failure = find_memory();
    return std::move(result_);
  }

 private:
  MaybeFailure all_cycles() {
    for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
      for (const ElementType* type : options_.types) {
        if (auto failure = one_type(*type)) return failure;
      }
    }
    return std::nullopt;
  }

  MaybeFailure one_type(const ElementType& type) {
    const std::span<const ReductionInfo* const> selected = options_.reductions;
    for (const ReductionInfo* reduction : selected.first(options_.collective->reduces ? selected.size() : 1)) {
      const bool every_root = options_.collective->rooted && options_.root == -1;
      const int first = options_.collective->rooted ? std::max(options_.root, 0) : -1;
      const int last = every_root ? team_.world() - 1 : first;
      for (int root = first; root <= last; ++root) {
        for (std::optional<std::uint64_t> size = options_.min_bytes; size; size = next_size(options_, *size)) {
          if (auto failure =
                  one_row({options_.collective, &type, reduction, root, *size, false, &options_.traffic, team_.world()}))
            return failure;
        }
      }
    }
    return std::nullopt;
  }

  MaybeFailure one_row(Problem problem) {
    const Extent extent = problem.extent(0);
    Row row;
    row.size = extent.total * problem.type->bytes;
    row.count = extent.count;
    row.type = problem.type->name;
    row.reduction = problem.collective->reduces ? problem.reduction->name : "none";
    row.root = problem.root;
    if (auto failure = one_half(problem, row.out_of_place)) return failure;
    problem.in_place = true;
    if (problem.collective->works_in_place) {
      if (auto failure = one_half(problem, row.in_place)) return failure;
    }
    if (options_.timestamps) row.timestamp = timestamp();
    if (team_.has_rank_0()) {
      settings_.print(row_text(row, options_));
      result_.rows.push_back(std::move(row));
    }
    return std::nullopt;
  }

  MaybeFailure one_half(const Problem& problem, std::optional<Measurement>& half) {
    Measurement measured;
    if (auto failure = measurer_.measure(problem, measured)) return failure;
    bus_sum_ += measured.bus_gbs;
    ++halves_;
    result_.verdict.wrong += measured.wrong.value_or(0);
    half = std::move(measured);
    return std::nullopt;
  }

  MaybeFailure find_memory() {
    rusage usage = {};
    ::getrusage(RUSAGE_SELF, &usage);
    std::vector<std::vector<double>> peaks(team_.members().size(), {static_cast<double>(usage.ru_maxrss) / 1024});  // KiB
    if (auto failure = team_.combine(peaks, ncclMax)) return failure;
    result_.verdict.memory_mib = peaks.front()[0];
    return std::nullopt;
  }

  const Options& options_;
  Team& team_;
  const SweepSettings& settings_;
  Measurer measurer_;
  SweepResult result_;
  double bus_sum_ = 0;
  std::int64_t halves_ = 0;
};

}  // namespace

SweepResult run_sweep(const Options& options, Team& team, const SweepSettings& settings) {
  return Sweep(options, team, settings).run();
}

std::size_t buffer_bytes(const Options& options, int world) {
  std::size_t most = 0;
  for (const ElementType* type : options.types) {
    // In place, blocks lie among as many elements as the size column counts.
    const Place place = {.rank = 0, .world = world, .root = 0, .traffic = &options.traffic};
    const std::size_t elements = options.collective->extent(options.max_bytes, type->bytes, place).total;
    most = std::max(most, (elements + static_cast<std::size_t>(options.unalign)) * type->bytes);
  }
  return most;
}

std::string timestamp() { return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr))); }

}  // namespace shoal::perf
