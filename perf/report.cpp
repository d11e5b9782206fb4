// SPDX-License-Identifier: Apache-2.0
#include "perf/report.h"

#include <fmt/format.h>
#include <shoal/shoal.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shoal::perf {
namespace {

std::string half_heading_1() { return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "time", "algbw", "busbw", "#wrong"); }
std::string half_heading_2() { return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", ""); }
constexpr int kHalfWidth = 2 + 7 + 2 + 6 + 2 + 6 + 2 + 6;

std::string half_text(const std::optional<Measurement>& half) {
  if (!half) return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "N/A", "N/A", "N/A", "N/A");
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", number_text(half->cpu_us.value_or(half->time_us), 7),
                     number_text(half->algorithm_gbs, 6), number_text(half->bus_gbs, 6),
                     half->wrong ? fmt::format("{}", *half->wrong) : "N/A");
}

std::string compression_text(const std::optional<Measurement>& half) {
  if (!half || !half->compression) return fmt::format("  {:>7}  {:>8}", "N/A", "N/A");
  return fmt::format("  {:>7}  {:>8}", number_text(half->compression->ratio, 7), fmt::format("{:.2g}", half->compression->error));
}

std::string statistics_text(const std::optional<Measurement>& half) {
  if (!half || !half->iterations) return fmt::format("  {:>7}  {:>7}  {:>7}  {:>6}", "N/A", "N/A", "N/A", "N/A");
  const IterationStatistics& s = *half->iterations;
  return fmt::format("  {:>7}  {:>7}  {:>7}  {:>6}", number_text(s.min, 7), number_text(s.max, 7), number_text(s.p99, 7),
                     number_text(s.variation, 6));
}

}  // namespace

IterationStatistics iteration_statistics(std::vector<double> times) {
  IterationStatistics s;
  s.times = times;
  std::sort(times.begin(), times.end());
  const auto n = static_cast<double>(times.size());
  const auto percentile = [&](double percent) {
    const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * n));
    return times[std::max<std::size_t>(rank, 1) - 1];
  };
  s.min = times.front();
  s.max = times.back();
  s.average = std::accumulate(times.begin(), times.end(), 0.0) / n;
  s.p50 = percentile(50);
  s.p95 = percentile(95);
  s.p99 = percentile(99);
  double squares = 0;
  for (const double time : times) squares += (time - s.average) * (time - s.average);
  s.deviation = std::sqrt(squares / n);
  s.variation = s.average > 0 ? s.deviation / s.average : 0;
  return s;
}

Measurement make_measurement(std::uint64_t bytes, double time_us, double bus_factor) {
  Measurement half;
  half.time_us = time_us;
  half.algorithm_gbs = time_us > 0 ? static_cast<double>(bytes) / time_us / 1e3 : 0;  // bytes/us = 1e6 bytes/s
  half.bus_gbs = half.algorithm_gbs * bus_factor;
  return half;
}

std::string number_text(double value, int width) {
  for (int decimals = 2; decimals >= 0; --decimals) {
    std::string text = fmt::format("{:.{}f}", value, decimals);
    if (static_cast<int>(text.size()) <= width) return text;
  }
  // "1.2e+09": sign of the exponent and two digits of it always stand.
  std::string text = fmt::format("{:.{}e}", value, std::max(width - 6, 0));
  return static_cast<int>(text.size()) <= width ? text : fmt::format("{:.0e}", value);
}

std::string heading(const Options& options, int library_version, const std::vector<RankInfo>& ranks) {
  const Options& o = options;
  const auto step = o.step_factor != 0 ? static_cast<std::uint64_t>(o.step_factor) : o.step_bytes;
  std::string text = fmt::format("# shoal-perf version {} nccl-headers={} nccl-library={}\n", shoalVersion(), NCCL_VERSION_CODE,
                                 library_version);
  text += fmt::format("# Collective test starting: {}_perf\n", o.collective->name);
  text += fmt::format(
      "# nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: {} validation: {} graph: "
      "0\n#\n",
      o.threads, o.ranks_per_thread, o.min_bytes, o.max_bytes, step, o.step_factor != 0 ? "factor" : "bytes", o.warmup,
      o.iterations, o.aggregate, o.checks);
  if (!o.compressor.empty())
    text += fmt::format("# Compressor: {}{}{}; algbw and busbw are those of the uncompressed bytes\n#\n", o.compressor,
                        o.compressor_options.empty() ? "" : ":", o.compressor_options);
  if (o.buffers != Memory::own || o.fresh)
    text += fmt::format("# Buffers: {}{}\n#\n", name_of(o.buffers), o.fresh ? ", inputs rewritten before each timed call" : "");
  text += "# Using devices\n";
  for (const RankInfo& info : ranks) {
    text += fmt::format("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} [host] host memory\n", info.rank, 0, info.pid,
                        info.host, info.device);
  }
  return text + "#\n";
}

std::string column_heading(const Options& options) {
  const std::string left = fmt::format("#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count", "type", "redop", "root");
  const std::string units = fmt::format("#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}", "(B)", "(elements)", "", "", "");
  std::string first = fmt::format("#{:{}}{:^{}}{:^{}}", "", left.size() - 1, "out-of-place", kHalfWidth, "in-place", kHalfWidth);
  std::string second = left + half_heading_1() + half_heading_1();
  std::string third = units + half_heading_2() + half_heading_2();
  if (options.timestamps) second += fmt::format("  {:>19}", "timestamp");
  for (int half = 0; half < 2 && !options.compressor.empty(); ++half) {
    second += fmt::format("  {:>7}  {:>8}", "ratio", "error");
    third += fmt::format("  {:>7}  {:>8}", "", "(rel L2)");
  }
  if (options.per_iteration) {
    for (int half = 0; half < 2; ++half) {
      second += fmt::format("  {:>7}  {:>7}  {:>7}  {:>6}", "min", "max", "p99", "cv");
      third += fmt::format("  {:>7}  {:>7}  {:>7}  {:>6}", "(us)", "(us)", "(us)", "");
    }
  }
  return first + "\n" + second + "\n" + third + "\n";
}

std::string row_text(const Row& row, const Options& options) {
  std::string text = fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", row.size, row.count, row.type, row.reduction, row.root);
  text += half_text(row.out_of_place) + half_text(row.in_place);
  if (options.timestamps) text += "  " + row.timestamp;
  if (!options.compressor.empty()) text += compression_text(row.out_of_place) + compression_text(row.in_place);
  if (options.per_iteration) text += statistics_text(row.out_of_place) + statistics_text(row.in_place);
  return text + "\n";
}

std::string footer(const Options& options, const Verdict& verdict) {
  std::string text = fmt::format("# Out of bounds values : {} {}\n", verdict.wrong, verdict.values_okay() ? "OK" : "FAILED");
  text += fmt::format("# Avg bus bandwidth    : {:g}", verdict.average_bus_gbs);
  if (verdict.required_gbs) text += verdict.bandwidth_okay() ? " OK" : " FAILED";
  text += fmt::format("\n#\n# Collective test concluded: {}_perf\n", options.collective->name);
  if (verdict.memory_mib) text += fmt::format("# Memory: {:.1f} MiB at the peak of the largest process\n", *verdict.memory_mib);
  for (const std::string& error : verdict.errors) text += "# error: " + error + "\n";
  return text + (verdict.errors.empty() ? "\n" : "");
}

}  // namespace shoal::perf
