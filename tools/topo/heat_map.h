// SPDX-License-Identifier: Apache-2.0
// A square matrix as a picture: the redder, the slower. Pure.
#pragma once

#include <string>
#include <vector>

namespace shoal::topo_tool {

struct HeatMap {
  std::string title, subtitle;
  std::vector<std::string> names;               // of rows and columns
  std::vector<std::vector<double>> values;      // above 0; the diagonal is left out
  std::vector<std::vector<std::string>> texts;  // in the fields
  bool more_is_better = true;
};

// A self-contained SVG document, maps below each other; colours over the logarithm of the values.
std::string draw(const std::vector<HeatMap>& maps);

}  // namespace shoal::topo_tool
