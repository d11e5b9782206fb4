// SPDX-License-Identifier: Apache-2.0
// XML from outside as a tree of elements, each with its line; what files of topologies use of XML, and no more. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"

namespace shoal::topo {

struct Element {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<Element> children;
  int line = 0;

  const std::string* attribute(std::string_view wanted) const;  // null if it is not there
};

// The root. invalid_argument says line and reason; document types (and so entities), text between elements, and trees beyond any
// machine are refused. Any bytes may be handed in.
Result<Element> parse_xml(std::string_view text);

// Two blanks a level. Attributes are escaped.
std::string text_of(const Element& root);

}  // namespace shoal::topo
