// SPDX-License-Identifier: Apache-2.0
#include "tools/drawing/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "tools/drawing/svg.h"

namespace shoal::drawing {
namespace {

constexpr double kLeft = 76, kTop = 72, kWidth = 560, kBottom = 52;
constexpr double kNameHeight = 15;
constexpr std::array<std::string_view, 3> kDashes = {"", " stroke-dasharray=\"7 3\"", " stroke-dasharray=\"2 3\""};

struct Axis {
  double low = 1, high = 10, from = 0, to = 1;  // values, and where they are drawn
  double at(double value) const {
    return from + (std::log(value) - std::log(low)) / (std::log(high) - std::log(low)) * (to - from);
  }
};

std::string style_of(std::size_t line, bool wins) {
  return fmt::format("stroke=\"{}\" stroke-width=\"{}\"{}", kPalette[line % kPalette.size()], wins ? 2.8 : 1.3,
                     kDashes[line / kPalette.size() % kDashes.size()]);
}

// Where names go, near the ends of their lines and clear of each other.
std::vector<double> spread(std::vector<std::pair<double, std::size_t>> wanted, double low, double high) {
  std::sort(wanted.begin(), wanted.end());
  std::vector<double> at(wanted.size());
  double next = low;
  for (const auto& [y, line] : wanted) {
    at[line] = std::max(y, next);
    next = at[line] + kNameHeight;
  }
  double limit = high;
  for (auto each = wanted.rbegin(); each != wanted.rend(); ++each) {
    at[each->second] = std::min(at[each->second], limit);
    limit = at[each->second] - kNameHeight;
  }
  return at;
}

struct Size {
  double width = 0, height = 0;
};

Size draw(Svg& svg, const Chart& chart) {
  double x_low = HUGE_VAL, x_high = 0, y_low = HUGE_VAL, y_high = 0, name_width = 0;
  std::map<double, std::pair<double, std::size_t>> best;  // by x: y and line
  for (std::size_t l = 0; l < chart.lines.size(); ++l) {
    name_width = std::max(name_width, width_of(chart.lines[l].name, 12, true));
    for (const auto& [x, y] : chart.lines[l].points) {
      x_low = std::min(x_low, x);
      x_high = std::max(x_high, x);
      y_low = std::min(y_low, y);
      y_high = std::max(y_high, y);
      const auto [found, is_new] = best.try_emplace(x, y, l);
      const bool wins = chart.highest_wins ? y > found->second.first : y < found->second.first;
      if (!is_new && wins) found->second = {y, l};
    }
  }
  const double height = std::max(340.0, static_cast<double>(chart.lines.size()) * kNameHeight + 20);
  const double total = kLeft + kWidth + 30 + name_width + 16;
  svg.text(16, 30, chart.title, {.size = 17, .bold = true});
  svg.text(16, 50, chart.subtitle, {.size = 12.5, .fill = kFaintInk});
  if (best.empty()) return {total, 80};

  const Axis x{x_low, x_high > x_low ? x_high : 2 * x_low, kLeft, kLeft + kWidth};
  const double low_power = std::floor(std::log10(y_low) + 1e-9),
               high_power = std::max(low_power + 1, std::ceil(std::log10(y_high) - 1e-9));
  const Axis y{std::pow(10, low_power), std::pow(10, high_power), kTop + height, kTop};
  for (double power = low_power; power <= high_power; ++power) {
    const double at = y.at(std::pow(10, power));
    svg.line(kLeft, at, kLeft + kWidth, at, fmt::format("stroke=\"{}\"", kRule));
    svg.text(kLeft - 8, at + 4, chart.y_text(std::pow(10, power)), {.size = 12, .anchor = "end", .fill = kFaintInk});
  }
  double free_from = 0;  // marks keep clear of each other
  for (const double mark : chart.x_marks) {
    if (mark < x.low || mark > x.high) continue;
    const std::string text = chart.x_text(mark);
    const double half = width_of(text, 12) / 2;
    svg.line(x.at(mark), kTop + height, x.at(mark), kTop + height + 4, fmt::format("stroke=\"{}\"", kFaintInk));
    if (x.at(mark) - half < free_from) continue;
    svg.text(x.at(mark), kTop + height + 19, text, {.size = 12, .anchor = "middle", .fill = kFaintInk});
    free_from = x.at(mark) + half + 8;
  }
  svg.text(kLeft + kWidth / 2, kTop + height + 40, chart.x_title, {.size = 12.5, .anchor = "middle", .fill = kFaintInk});

  std::vector<bool> wins(chart.lines.size(), false);
  for (const auto& [at, winner] : best) wins[winner.second] = true;
  std::vector<std::pair<double, std::size_t>> wanted;
  for (std::size_t l = 0; l < chart.lines.size(); ++l) {
    const auto& points = chart.lines[l].points;
    wanted.emplace_back(points.empty() ? kTop + height : y.at(points.back().second), l);
    std::string d;
    for (const auto& [px, py] : points) d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", x.at(px), y.at(py));
    if (!d.empty()) svg.path(d, "fill=\"none\" stroke-linejoin=\"round\" " + style_of(l, wins[l]));
  }
  for (const auto& [at, winner] : best)
    svg.circle(x.at(at), y.at(winner.first), 4,
               fmt::format("fill=\"{}\" stroke=\"{}\"", kPalette[winner.second % kPalette.size()], kInk));
  const std::vector<double> names = spread(wanted, kTop + 6, kTop + height);
  for (std::size_t l = 0; l < chart.lines.size(); ++l) {
    const auto& points = chart.lines[l].points;
    if (points.empty()) continue;
    const double end_x = x.at(points.back().first), end_y = y.at(points.back().second);
    svg.line(end_x + 4, end_y, kLeft + kWidth + 22, names[l],
             fmt::format("stroke=\"{}\" stroke-width=\"0.8\" stroke-opacity=\"0.6\"", kPalette[l % kPalette.size()]));
    svg.text(kLeft + kWidth + 26, names[l] + 4, chart.lines[l].name, {.size = 12, .bold = wins[l]});
  }
  return {total, kTop + height + kBottom};
}

}  // namespace

std::string draw(std::span<const Chart> charts) {
  Svg svg;
  Size all;
  for (const Chart& chart : charts) {
    svg.raw(fmt::format("<g transform=\"translate(0,{:.1f})\">\n", all.height));
    const Size size = draw(svg, chart);
    svg.raw("</g>\n");
    all = {std::max(all.width, size.width), all.height + size.height};
  }
  return svg.document(all.width, all.height, charts.empty() ? "" : charts.front().title);
}

std::string draw(const Chart& chart) { return draw({&chart, 1}); }

}  // namespace shoal::drawing
