// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/drawing/svg.h"

namespace shoal::topo_tool {

using namespace drawing;

namespace {

constexpr double kMargin = 16, kHead = 56, kField = 58, kRow = 30;

// 0: the best value there is, 1: the worst.
std::vector<std::vector<double>> badness(const HeatMap& map) {
  double low = INFINITY, high = 0;
  for (std::size_t a = 0; a < map.values.size(); ++a)
    for (std::size_t b = 0; b < map.values.size(); ++b)
      if (a != b && map.values[a][b] > 0) {
        low = std::min(low, map.values[a][b]);
        high = std::max(high, map.values[a][b]);
      }
  std::vector<std::vector<double>> bad = map.values;
  for (auto& row : bad)
    for (double& value : row) {
      const double share = value > 0 && high > low ? std::log(value / low) / std::log(high / low) : 0.5;
      value = std::clamp(map.more_is_better ? 1 - share : share, 0.0, 1.0);
    }
  return bad;
}

std::string colour(double bad) {
  return bad < 0.5 ? tint(kPalette[0], 0.35 + bad) : tint(kPalette[5], 1.35 - bad);  // blue over white to red
}

}  // namespace

std::string draw(const std::vector<HeatMap>& maps) {
  Svg svg;
  double width = 320, y = 0;
  for (const HeatMap& map : maps) {
    double label = 40;
    for (const std::string& name : map.names) label = std::max(label, width_of(name, 12, true) + 10);
    const std::vector<std::vector<double>> bad = badness(map);
    svg.text(kMargin, y + 28, map.title, {.size = 16, .bold = true});
    svg.text(kMargin, y + 46, map.subtitle, {.size = 12, .fill = kFaintInk});
    width = std::max({width, 2 * kMargin + width_of(map.title, 16, true), 2 * kMargin + width_of(map.subtitle, 12)});
    y += kHead;
    for (std::size_t a = 0; a < map.values.size(); ++a) {
      const double top = y + kRow * static_cast<double>(a + 1);
      svg.text(kMargin, top + 19, map.names[a], {.size = 12, .bold = true});
      svg.text(kMargin + label + kField * (static_cast<double>(a) + 0.5), y + 19, map.names[a].substr(0, map.names[a].find(' ')),
               {.size = 12, .anchor = "middle", .bold = true});
      for (std::size_t b = 0; b < map.values.size(); ++b) {
        const double left = kMargin + label + kField * static_cast<double>(b);
        svg.rect(left, top, kField - 2, kRow - 2,
                 fmt::format("rx=\"2\" fill=\"{}\"", a == b ? std::string(kBand) : colour(bad[a][b])));
        if (a != b) svg.text(left + kField / 2 - 1, top + 18.5, map.texts[a][b], {.size = 11, .anchor = "middle"});
      }
    }
    y += kRow * static_cast<double>(map.values.size() + 1) + 8;
    width = std::max(width, 2 * kMargin + label + kField * static_cast<double>(map.values.size()));
  }
  return svg.document(width, y + kMargin, maps.empty() ? "" : maps.front().title);
}

}  // namespace shoal::topo_tool
