// SPDX-License-Identifier: Apache-2.0
#include "perf/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "tools/cli/values.h"
#include "tools/drawing/chart.h"

namespace shoal::perf {
namespace {

using drawing::Chart;

// What one line shows, but for its half.
struct Label {
  std::string run, collective, type, reduction;
  int root = -1;
  std::string half;
  friend auto operator<=>(const Label&, const Label&) = default;
};

struct Point {
  double time_us = 0, bus_gbs = 0;
};
using Curve = std::map<std::uint64_t, Point>;  // by size

void add(Curve& curve, std::uint64_t size, const Measurement& half) {
  const Point point = {.time_us = half.cpu_us.value_or(half.time_us), .bus_gbs = half.bus_gbs};
  if (size == 0 || point.time_us <= 0) return;  // has no place on a logarithmic axis
  const auto [at, is_new] = curve.try_emplace(size, point);
  if (!is_new && point.time_us < at->second.time_us) at->second = point;
}

std::map<Label, Curve> curves_of(std::span<const Results> runs, bool both_halves) {
  std::map<Label, Curve> all;
  for (const Results& run : runs)
    for (const Row& row : run.rows) {
      const auto label = [&](const char* half) {
        return Label{run.name, run.collective, row.type, row.reduction, row.root, half};
      };
      if (row.out_of_place) add(all[label(both_halves ? "out of place" : "")], row.size, *row.out_of_place);
      if (row.in_place && (both_halves || !row.out_of_place))
        add(all[label(both_halves ? "in place" : "")], row.size, *row.in_place);
    }
  std::erase_if(all, [](const auto& each) { return each.second.empty(); });
  return all;
}

// A line's name: the parts in which kinds differ.
std::map<Label, std::string> names_of(const std::map<Label, Curve>& curves) {
  constexpr std::size_t kParts = 6;
  const auto parts = [](const Label& label) {
    return std::array<std::string, kParts>{
        label.run, label.collective, label.type, label.reduction, label.root < 0 ? "" : fmt::format("root {}", label.root),
        label.half};
  };
  std::array<std::set<std::string>, kParts> values;
  for (const auto& [label, curve] : curves)
    for (std::size_t i = 0; i < kParts; ++i) values[i].insert(parts(label)[i]);
  std::map<Label, std::string> names;
  for (const auto& [label, curve] : curves) {
    std::string& name = names[label];
    for (std::size_t i = 0; i < kParts; ++i)
      if (values[i].size() > 1 && !parts(label)[i].empty()) name += (name.empty() ? "" : ", ") + parts(label)[i];
    if (name.empty()) name = label.run.empty() ? label.collective : label.run;
  }
  return names;
}

std::string title_of(std::span<const Results> runs) {
  std::set<std::string> collectives, worlds;
  for (const Results& run : runs) {
    collectives.insert(run.collective);
    worlds.insert(fmt::format("{} rank{}", run.world, run.world == 1 ? "" : "s"));
  }
  std::string title = collectives.size() == 1 ? *collectives.begin() : "collectives";
  if (title.empty()) title = "a collective";
  return worlds.size() == 1 && runs.front().world > 0 ? title + ", " + *worlds.begin() : title;
}

std::string size_mark(double bytes) { return cli::size_text(static_cast<std::uint64_t>(bytes)) + "B"; }

std::string time_mark(double us) {
  if (us >= 1e6) return fmt::format("{:g} s", us / 1e6);
  return us >= 1e3 ? fmt::format("{:g} ms", us / 1e3) : us >= 1 ? fmt::format("{:g} us", us) : fmt::format("{:g} ns", us * 1e3);
}

}  // namespace

std::string plot(std::span<const Results> runs) {
  // The two halves of a lone kind of call; of several one each.
  const bool alone = runs.size() == 1 && curves_of(runs, false).size() == 1;
  const std::map<Label, Curve> curves = curves_of(runs, alone);
  const std::map<Label, std::string> names = names_of(curves);
  Chart time{.title = runs.empty() ? "" : title_of(runs),
             .subtitle = "time of a call",
             .x_title = "size",
             .x_text = size_mark,
             .y_text = time_mark,
             .x_marks = {},
             .lines = {}};
  Chart bandwidth{.title = time.title,
                  .subtitle = "bus bandwidth, 1 GB = 10^9 bytes",
                  .x_title = "size",
                  .x_text = size_mark,
                  .y_text = [](double gbs) { return fmt::format("{:g} GB/s", gbs); },
                  .x_marks = {},
                  .lines = {},
                  .highest_wins = true};
  std::set<double> sizes;
  for (const auto& [label, curve] : curves) {
    drawing::Line times{names.at(label), {}}, rates{names.at(label), {}};
    for (const auto& [size, point] : curve) {
      sizes.insert(static_cast<double>(size));
      times.points.emplace_back(static_cast<double>(size), point.time_us);
      if (point.bus_gbs > 0) rates.points.emplace_back(static_cast<double>(size), point.bus_gbs);
    }
    time.lines.push_back(std::move(times));
    bandwidth.lines.push_back(std::move(rates));
  }
  time.x_marks = bandwidth.x_marks = {sizes.begin(), sizes.end()};
  const std::array charts = {std::move(time), std::move(bandwidth)};
  return drawing::draw(charts);
}

}  // namespace shoal::perf
