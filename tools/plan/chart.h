// SPDX-License-Identifier: Apache-2.0
// Lines over logarithmic axes, each with its name at its end. Pure.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::plan_tool {

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;  // both above 0, x ascending
};

struct Chart {
  std::string title, subtitle, x_title;
  std::function<std::string(double)> x_text, y_text;  // of marks on the axes
  std::vector<double> x_marks;
  std::vector<Line> lines;
};

// A self-contained SVG document. The lowest line at each x has a dot there; lines that are never the lowest are thin.
std::string draw(const Chart& chart);

}  // namespace shoal::plan_tool
