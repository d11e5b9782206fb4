// SPDX-License-Identifier: Apache-2.0
#include "perf/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace shoal::perf {
namespace {

double time_of(const Measurement& half) { return half.cpu_us.value_or(half.time_us); }

// The shortest times of each call.
struct Shortest {
  std::optional<double> out_of_place, in_place;
};
void keep(std::optional<double>& least, const std::optional<Measurement>& half) {
  if (half && time_of(*half) > 0) least = std::min(least.value_or(time_of(*half)), time_of(*half));
}
std::map<RowKey, Shortest> shortest_of(const Results& results) {
  std::map<RowKey, Shortest> all;
  for (const Row& row : results.rows) {
    if (row.size == 0) continue;
    Shortest& least = all[results.key(row)];
    keep(least.out_of_place, row.out_of_place);
    keep(least.in_place, row.in_place);
  }
  return all;
}

std::optional<Compared::Half> both(const std::optional<double>& then, const std::optional<double>& now) {
  if (!then || !now) return std::nullopt;
  return Compared::Half{*then, *now};
}

bool is_cpu_time(const Results& results) {
  return std::any_of(results.rows.begin(), results.rows.end(), [](const Row& row) {
    return (row.out_of_place && row.out_of_place->cpu_us) || (row.in_place && row.in_place->cpu_us);
  });
}

std::string half_text(const std::optional<Compared::Half>& half) {
  if (!half) return fmt::format("  {:>7}  {:>7}  {:>6}", "N/A", "N/A", "N/A");
  return fmt::format("  {:>7}  {:>7}  {:>6}", number_text(half->then_us, 7), number_text(half->now_us, 7),
                     number_text(half->ratio(), 6));
}

}  // namespace

bool Compared::is_worse(double tolerance) const {
  const auto worse = [tolerance](const std::optional<Half>& half) { return half && half->ratio() > tolerance; };
  return worse(out_of_place) || worse(in_place);
}

std::string check_comparable(const Results& then, const Results& now) {
  if (!then.collective.empty() && then.collective != now.collective)
    return fmt::format("is of {}, this run is of {}", then.collective, now.collective);
  if (then.world != 0 && then.world != now.world) return fmt::format("is of {} ranks, this run has {}", then.world, now.world);
  return "";
}

std::vector<Compared> compare(const Results& then, const Results& now) {
  Results same_name = then;
  same_name.collective = now.collective;
  if (is_cpu_time(then) != is_cpu_time(now)) return {};
  const std::map<RowKey, Shortest> before = shortest_of(same_name);
  std::map<RowKey, Shortest> left = shortest_of(now);
  std::vector<Compared> all;
  for (const Row& row : now.rows) {
    const auto mine = left.find(now.key(row));
    const auto theirs = before.find(now.key(row));
    if (mine == left.end() || theirs == before.end()) continue;
    Compared each = {.key = mine->first,
                     .out_of_place = both(theirs->second.out_of_place, mine->second.out_of_place),
                     .in_place = both(theirs->second.in_place, mine->second.in_place)};
    left.erase(mine);  // of several cycles one line
    if (each.out_of_place || each.in_place) all.push_back(std::move(each));
  }
  return all;
}

std::string comparison_text(const std::vector<Compared>& compared, const std::string& path, double tolerance) {
  std::string text = fmt::format("#\n# Baseline: {}; more than {:g} times its time is worse\n", path, tolerance);
  if (compared.empty()) return text + "# Baseline: no call of this run is in it (sizes, types, operations, -C): FAILED\n";
  text += fmt::format("#{:>11}  {:>8}  {:>6}  {:>6}  {:>7}  {:>7}  {:>6}  {:>7}  {:>7}  {:>6}\n", "size", "type", "redop", "root",
                      "then", "now", "ratio", "then", "now", "ratio");
  std::size_t worse = 0;
  for (const Compared& each : compared) {
    const bool is_worse = each.is_worse(tolerance);
    worse += is_worse ? 1 : 0;
    text += fmt::format("#{:>11}  {:>8}  {:>6}  {:>6}{}{}{}\n", each.key.size, each.key.type, each.key.reduction, each.key.root,
                        half_text(each.out_of_place), half_text(each.in_place), is_worse ? "  WORSE" : "");
  }
  return text +
         fmt::format("# Baseline: {} calls compared, {} worse: {}\n", compared.size(), worse, worse == 0 ? "OK" : "FAILED");
}

bool is_good(const std::vector<Compared>& compared, double tolerance) {
  return !compared.empty() &&
         std::none_of(compared.begin(), compared.end(), [tolerance](const Compared& each) { return each.is_worse(tolerance); });
}

}  // namespace shoal::perf
