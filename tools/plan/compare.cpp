// SPDX-License-Identifier: Apache-2.0
// shoal-plan compare: predicted times of algorithms side by side, over sizes or over worlds; and the course's table.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/drawing/chart.h"
#include "tools/plan/course.h"
#include "tools/plan/prediction.h"
#include "tools/plan/units.h"

namespace shoal::plan_tool {
namespace {

using namespace drawing;
using nlohmann::ordered_json;
using namespace plan;

// min, min * factor, ... up to max.
struct Series {
  std::uint64_t low, high, factor;
  std::vector<std::uint64_t> values() const {
    std::vector<std::uint64_t> all;
    for (std::uint64_t v = low; v <= high; v *= factor) all.push_back(v);
    return all;
  }
};

// Reads "1K:1G:4" into `series`; "", or why not.
std::string read_series(const std::string& text, std::uint64_t most, Series& series) {
  const std::size_t first = text.find(':'), second = text.find(':', first == std::string::npos ? first : first + 1);
  if (second == std::string::npos) return "is no MIN:MAX:FACTOR, such as 1K:1G:4";
  const auto low = cli::parse_size(text.substr(0, first)), high = cli::parse_size(text.substr(first + 1, second - first - 1)),
             factor = cli::parse_size(text.substr(second + 1));
  for (const auto* part : {&low, &high, &factor})
    if (!part->is_ok()) return part->why();
  if (*low < 1 || *high < *low || *high > most) return fmt::format("must be 1 <= MIN <= MAX <= {}", cli::size_text(most));
  if (*factor < 2 || *factor > 1 << 20) return "must have a FACTOR of at least 2";
  series = {*low, *high, *factor};
  return "";
}

struct Options {
  Target target;
  Machine machine;
  std::uint64_t bytes = 1 << 20;
  Series sizes{1 << 10, 1 << 30, 4}, worlds{2, 256, 2};
  bool over_sizes = false, over_worlds = false, course = false, world_given = false, json = false;
  std::string svg, names;
};

// One column: a call, and every algorithm's time, NaN where there is none.
struct Column {
  std::uint64_t x = 0;
  std::vector<double> seconds;
  std::size_t winner() const {
    std::size_t best = 0;
    for (std::size_t a = 1; a < seconds.size(); ++a)
      if (std::isnan(seconds[best]) || seconds[a] < seconds[best]) best = a;
    return best;
  }
};

struct Comparison {
  std::vector<const algorithms::Algorithm*> algorithms;
  std::vector<Column> columns;
  std::vector<std::string> notes;  // why there is no time
};

Result<std::vector<const algorithms::Algorithm*>> chosen(const Options& options) {
  std::vector<const algorithms::Algorithm*> some;
  if (options.names.empty()) {
    for (const algorithms::Algorithm& each : algorithms::all())
      if (each.collective == *options.target.collective) some.push_back(&each);
    return some;
  }
  for (std::size_t at = 0; at <= options.names.size();) {
    const std::size_t end = std::min(options.names.find(',', at), options.names.size());
    Target one = options.target;
    one.algorithm = options.names.substr(at, end - at);
    const auto found = algorithm_of(one);
    if (!found.is_ok()) return found.status();
    some.push_back(*found);
    at = end + 1;
  }
  return some;
}

Result<Column> column_of(std::uint64_t x, const Options& options, Comparison& comparison) {
  Target target = options.target;
  if (options.over_worlds) target.world = static_cast<std::int32_t>(x);
  const auto cluster = cluster_of(options.machine, target);
  if (!cluster.is_ok()) return cluster.status();
  const auto bytes = simulator_bytes(*target.collective, target.world, options.over_worlds ? options.bytes : x);
  if (!bytes.is_ok()) return bytes.status();
  Column column{x, {}};
  for (const algorithms::Algorithm* algorithm : comparison.algorithms) {
    const auto seconds = predict_time(*algorithm, target.request(), *bytes, *cluster, options.machine);
    column.seconds.push_back(seconds.is_ok() ? *seconds : std::nan(""));
    if (!seconds.is_ok()) comparison.notes.emplace_back(seconds.status().text());
  }
  return column;
}

std::string x_text(const Options& options, double x) {
  return options.over_worlds ? fmt::format("{}", static_cast<std::uint64_t>(x)) : bytes_text(x);
}

std::string title_of(const Options& options) {
  const std::string where =
      options.over_worlds ? bytes_text(static_cast<double>(options.bytes)) : fmt::format("{} ranks", options.target.world);
  return fmt::format("{}, {} on {}", name_of(*options.target.collective), where, options.machine.cluster);
}

void print(const Options& options, Comparison& comparison) {
  fmt::print("{}: predicted time, * the shortest\n\n{:24}", title_of(options), options.over_worlds ? "ranks" : "bytes");
  for (const Column& column : comparison.columns) fmt::print(" {:>10}", x_text(options, static_cast<double>(column.x)));
  fmt::print("\n");
  for (std::size_t a = 0; a < comparison.algorithms.size(); ++a) {
    fmt::print("{:24}", comparison.algorithms[a]->name);
    for (const Column& column : comparison.columns) {
      const double seconds = column.seconds[a];
      fmt::print(" {:>9}{}", std::isnan(seconds) ? "-" : seconds_text(seconds),
                 !std::isnan(seconds) && column.winner() == a ? "*" : " ");
    }
    fmt::print("\n");
  }
  std::vector<std::string>& notes = comparison.notes;
  std::sort(notes.begin(), notes.end());
  notes.erase(std::unique(notes.begin(), notes.end()), notes.end());
  if (!notes.empty()) fmt::print("\n");
  for (const std::string& note : notes) fmt::print("- {}\n", note);
}

void print_json(const Options& options, const Comparison& comparison) {
  ordered_json rows = ordered_json::array();
  for (const Column& column : comparison.columns) {
    ordered_json times;
    for (std::size_t a = 0; a < comparison.algorithms.size(); ++a) {
      ordered_json& time = times[std::string(comparison.algorithms[a]->name)];
      if (!std::isnan(column.seconds[a])) time = column.seconds[a];
    }
    rows.push_back({{"world", options.over_worlds ? column.x : static_cast<std::uint64_t>(options.target.world)},
                    {"bytes", options.over_worlds ? options.bytes : column.x},
                    {"winner", comparison.algorithms[column.winner()]->name},
                    {"time_s", std::move(times)}});
  }
  const ordered_json json = {
      {"collective", name_of(*options.target.collective)}, {"cluster", options.machine.cluster}, {"rows", std::move(rows)}};
  fmt::print("{}\n", json.dump(2));
}

std::string chart_of(const Options& options, const Comparison& comparison) {
  Chart chart{.title = title_of(options),
              .subtitle = "time as the simulator predicts it; a dot marks the shortest",
              .x_title = options.over_worlds ? "ranks" : "bytes",
              .x_text = [&options](double x) { return x_text(options, x); },
              .y_text =
                  [](double seconds) {
                    return seconds < 0.9e-6   ? fmt::format("{:.4g} ns", seconds * 1e9)
                           : seconds < 0.9e-3 ? fmt::format("{:.4g} us", seconds * 1e6)
                           : seconds < 0.9    ? fmt::format("{:.4g} ms", seconds * 1e3)
                                              : fmt::format("{:.4g} s", seconds);
                  },
              .x_marks = {},
              .lines = {}};
  for (const Column& column : comparison.columns) chart.x_marks.push_back(static_cast<double>(column.x));
  for (std::size_t a = 0; a < comparison.algorithms.size(); ++a) {
    Line line{std::string(comparison.algorithms[a]->name), {}};
    for (const Column& column : comparison.columns)
      if (column.seconds[a] > 0) line.points.emplace_back(static_cast<double>(column.x), column.seconds[a]);
    if (!line.points.empty()) chart.lines.push_back(std::move(line));
  }
  return draw(chart);
}

// ---- the course's table ----

std::string cell(std::string_view formula, const std::string& counted, bool equal) {
  return fmt::format("{} {} {}", counted, equal ? "=" : "is not", formula);
}

ordered_json json_of(const CourseRow& row, std::int32_t world) {
  return {{"world", world},
          {"scheme", row.scheme},
          {"algorithm", row.algorithm},
          {"reading", name_of(row.reading)},
          {"steps", row.counted.steps},
          {"steps_formula", row.steps},
          {"peak", text_of(row.counted.peak)},
          {"peak_formula", row.peak},
          {"total", text_of(row.counted.total)},
          {"total_formula", row.total},
          {"equal", row.counted == row.expected}};
}

Ending course(const Options& options) {
  std::vector<std::int32_t> worlds = {4, 8, 64, 1024};
  if (options.world_given) worlds = {options.target.world};
  if (const auto first = course_table({worlds[0]}); !first.is_ok()) return usage(first.status());
  ordered_json json = ordered_json::array();
  int different = 0;
  if (!options.json)
    fmt::print(
        "All-reduce of one vector among N ranks: counted from the plans = formula. Bandwidth in vectors; the reading \"a "
        "round\"\n"
        "counts the busiest round of algorithms that move whole vectors, \"whole\" the whole collective of those that move\n"
        "shares. The parameter server is rank 0, a worker too: N-1 vectors come in the first round, N-1 leave in the second.\n");
  for (const std::int32_t world : worlds) {
    const auto rows = course_table({world});
    if (!rows.is_ok()) return usage(rows.status());
    if (!options.json)
      fmt::print("\nN = {}\n{:34} {:19} {:8} {:18} {:22} {}\n", world, "scheme", "algorithm", "reading", "time steps",
                 "peak node bandwidth", "total bandwidth");
    for (const CourseRow& row : *rows) {
      const Cost &is = row.counted, &should = row.expected;
      different += is == should ? 0 : 1;
      if (options.json)
        json.push_back(json_of(row, world));
      else
        fmt::print("{:34} {:19} {:8} {:18} {:22} {}\n", row.scheme, row.algorithm, name_of(row.reading),
                   cell(row.steps, std::to_string(is.steps), is.steps == should.steps),
                   cell(row.peak, text_of(is.peak), is.peak == should.peak),
                   cell(row.total, text_of(is.total), is.total == should.total));
    }
  }
  if (options.json) fmt::print("{}\n", json.dump(2));
  return different == 0 ? Ending{} : Ending{kFailed, fmt::format("{} rows differ from their formulas", different)};
}

Status read(const Words& words, Options& options, std::optional<Ending>& ending) {
  cli::CommandLine line = command_line("compare", "predicted times of algorithms side by side.",
                                       "[COLLECTIVE] [--world N] [--sizes MIN:MAX:FACTOR] [OPTIONS]\n"
                                       "       shoal-plan compare [COLLECTIVE] --worlds MIN:MAX:FACTOR --bytes SIZE [OPTIONS]\n  "
                                       "     shoal-plan compare --course [--world N]");
  options.target.collective = Collective::all_reduce;
  take_collective(line, options.target);
  take_world(line, options.target);
  line.value("--sizes", "Bytes, of the vector or of all blocks of a rank together (default 1K:1G:4)", "MIN:MAX:FACTOR",
             [&options](const std::string& text) { return read_series(text, std::uint64_t{1} << 40, options.sizes); });
  line.value("--worlds", "Ranks", "MIN:MAX:FACTOR",
             [&options](const std::string& text) { return read_series(text, kMostRanks, options.worlds); });
  line.size("-b,--bytes", options.bytes, "With --worlds: bytes of the call (default 1M)");
  line.value("-a,--algorithms", "Only these", "A,B,...", [&options](const std::string& text) {
    options.names = text;
    return text.empty() ? "names none" : "";
  });
  options.machine.max_events = 20'000'000;
  options.machine.auto_events = 10'000'000;
  take_machine(line, options.machine);
  line.value("--svg", "Draws the times into this file", "FILE", [&options](const std::string& text) {
    options.svg = text;
    return text.empty() ? "names no file" : "";
  });
  line.flag("--course", options.course,
            "The comparison table of all-reduces: time steps, peak and total bandwidth, counted from plans");
  line.flag("--json", options.json, "As JSON");
  ending = parse(line, words);
  options.over_sizes = line.given("--sizes");
  options.over_worlds = line.given("--worlds");
  options.world_given = line.given("--world");
  if (ending) return {};
  // A barrier has no bytes, so that only worlds differ.
  if (*options.target.collective == Collective::barrier && !options.world_given) options.over_worlds = true;
  if (*options.target.collective == Collective::barrier && options.world_given) options.sizes = {1, 1, 2};
  if (options.over_sizes && options.over_worlds) return fail(Code::invalid_argument, "--worlds: not together with --sizes");
  if (options.over_worlds && options.world_given)
    return fail(Code::invalid_argument, "--world {}: not together with --worlds", options.target.world);
  if (options.over_worlds && options.target.root != 0 && static_cast<std::uint64_t>(options.target.root) >= options.worlds.low)
    return fail(Code::invalid_argument, "--root {}: a world of {} has ranks 0 to {}", options.target.root, options.worlds.low,
                options.worlds.low - 1);
  return options.over_worlds ? Status() : complete(options.target);
}

}  // namespace

Ending compare(const Words& words) {
  Options options;
  std::optional<Ending> ending;
  if (Status s = read(words, options, ending); !s.is_ok()) return usage(s);
  if (ending) return *ending;
  if (options.course) return course(options);

  Comparison comparison;
  auto some = chosen(options);
  if (!some.is_ok()) return usage(some.status());
  comparison.algorithms = some.take();
  for (const std::uint64_t x : options.over_worlds ? options.worlds.values() : options.sizes.values()) {
    auto column = column_of(x, options, comparison);
    if (!column.is_ok()) return usage(column.status());
    comparison.columns.push_back(column.take());
  }
  if (!options.svg.empty())
    if (Status s = write_file(options.svg, chart_of(options, comparison)); !s.is_ok())
      return {kFailed, "--svg " + std::string(s.text())};
  options.json ? print_json(options, comparison) : print(options, comparison);
  return {};
}

}  // namespace shoal::plan_tool
