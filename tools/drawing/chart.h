// SPDX-License-Identifier: Apache-2.0
// Lines over logarithmic axes, each with its name at its end. Pure.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shoal::drawing {

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;  // both above 0, x ascending
};

struct Chart {
  std::string title, subtitle, x_title;
  std::function<std::string(double)> x_text, y_text;  // of marks on the axes
  std::vector<double> x_marks;
  std::vector<Line> lines;
  bool highest_wins = false;  // else the lowest
};

// A self-contained SVG document, charts below each other. The line that wins at an x has a dot there; lines that never win are
// thin. The document's title is the first chart's.
std::string draw(std::span<const Chart> charts);
std::string draw(const Chart& chart);

}  // namespace shoal::drawing
