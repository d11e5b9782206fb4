// SPDX-License-Identifier: Apache-2.0
#include "train/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "train/error.h"

namespace shoal::train {
namespace {

// Four of Okabe and Ito's colours, which colour-blind people tell apart.
struct Kind {
  ActionKind kind;
  std::string_view colour, label;
};
constexpr std::array kKinds = {Kind{ActionKind::forward, "#56B4E9", "forward"}, Kind{ActionKind::backward, "#E69F00", "backward"},
                               Kind{ActionKind::backward_input, "#E69F00", "backward, input"},
                               Kind{ActionKind::backward_weight, "#009E73", "backward, weights"}};
constexpr std::string_view kInk = "#1f2328", kRule = "#d0d7de", kPaper = "#ffffff", kIdle = "#f3f5f7";

constexpr double kMargin = 16, kLabels = 64, kTitle = 44, kRow = 30, kGap = 4, kLegend = 34, kPlot = 880;

const Kind& looks_of(ActionKind kind) { return *std::ranges::find(kKinds, kind, &Kind::kind); }

std::string text(double x, double y, double size, std::string_view anchor, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x, y, size,
                     anchor, kInk, words);
}

std::string rect(double x, double y, double width, double height, std::string_view attributes) {
  return fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" {}/>\n", x, y, width, height,
                     attributes);
}

std::string escaped(std::string_view words) {
  std::string out;
  for (const char c : words) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

double opacity_of(std::size_t chunk) { return std::max(0.35, 1 - 0.25 * static_cast<double>(chunk)); }

std::string bar_of(const Timeline::Bar& bar, double top, double scale) {
  const double x = kMargin + kLabels + bar.begin * scale, width = (bar.end - bar.begin) * scale;
  std::string out = rect(x, top, width, kRow - kGap,
                         fmt::format("fill=\"{}\" fill-opacity=\"{:.2f}\" stroke=\"{}\" stroke-width=\"0.8\"",
                                     looks_of(bar.action.kind).colour, opacity_of(bar.action.chunk), kPaper));
  const std::string number = fmt::format("{}", bar.action.micro_batch);
  if (width >= 7.0 * static_cast<double>(number.size()) + 2) out += text(x + width / 2, top + 17, 11, "middle", number);
  return out;
}

std::string legend_of(const Timeline& timeline, double top) {
  std::string out;
  double x = kMargin + kLabels;
  for (const Kind& kind : kKinds) {
    if (std::ranges::none_of(timeline.bars, [&](const Timeline::Bar& bar) { return bar.action.kind == kind.kind; })) continue;
    out += rect(x, top, 14, 14, fmt::format("fill=\"{}\"", kind.colour));
    out += text(x + 20, top + 11, 12, "start", kind.label);
    x += 40 + 7 * static_cast<double>(kind.label.size());
  }
  return out + text(kMargin + kLabels + kPlot, top + 11, 12, "end", fmt::format("{:.4g} s", timeline.makespan()));
}

}  // namespace

std::string svg_of(const Timeline& timeline, std::string_view what) {
  const double makespan = timeline.makespan(), scale = makespan > 0 ? kPlot / makespan : 0;
  const double rows = static_cast<double>(timeline.stages) * kRow;
  const double width = 2 * kMargin + kLabels + kPlot, height = kTitle + rows + kLegend + kMargin;
  const std::string title = fmt::format("{}: utilisation {:.1f} %", escaped(what), 100 * timeline.utilisation());

  std::string body = text(kMargin, 28, 15, "start", title);
  for (std::size_t stage = 0; stage < timeline.stages; ++stage) {
    const double top = kTitle + static_cast<double>(stage) * kRow;
    body += text(kMargin, top + 17, 12, "start", fmt::format("stage {}", stage));
    body += rect(kMargin + kLabels, top, kPlot, kRow - kGap, fmt::format("fill=\"{}\"", kIdle));
  }
  for (const Timeline::Bar& bar : timeline.bars) body += bar_of(bar, kTitle + static_cast<double>(bar.stage) * kRow, scale);
  body += legend_of(timeline, kTitle + rows + 8);

  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n"
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<title>{2}</title>\n"
      "<rect x=\"0.5\" y=\"0.5\" width=\"{3}\" height=\"{4}\" rx=\"6\" fill=\"{5}\" stroke=\"{6}\"/>\n{7}</svg>\n",
      width, height, title, width - 1, height - 1, kPaper, kRule, body);
}

void write_svg(const Timeline& timeline, std::string_view what, const std::string& path) {
  std::ofstream file(path);
  file << svg_of(timeline, what);
  file.close();
  if (!file) throw failure(Exit::usage, "{} cannot be written", path);
}

}  // namespace shoal::train
