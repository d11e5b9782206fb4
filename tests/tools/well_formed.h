// SPDX-License-Identifier: Apache-2.0
// Is a picture XML that any viewer reads? For tests.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace shoal::testing {

// "" if `text` is XML as far as pictures use it (tags that close in order, attributes in quotes and once a tag, no stray < or &),
// or what is wrong.
inline std::string fault_in(const std::string& text) {
  std::vector<std::string> open;
  std::size_t roots = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '&') {
      const std::size_t end = text.find(';', at);
      const std::string entity = text.substr(at, end == std::string::npos ? 8 : end - at + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;") return "entity " + entity;
    }
    if (text[at] != '<') {
      ++at;
      continue;
    }
    if (text.compare(at, 4, "<!--") == 0) {
      at = text.find("-->", at);
      if (at == std::string::npos) return "a comment without an end";
      at += 3;
      continue;
    }
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return "a tag without an end";
    std::string tag = text.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.find('<') != std::string::npos) return "< in tag " + tag;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "unexpected <" + tag + ">";
      open.pop_back();
      continue;
    }
    const bool is_empty = tag.back() == '/';
    if (is_empty) tag.pop_back();
    const std::string name = tag.substr(0, tag.find(' '));
    if (open.empty()) ++roots;
    std::set<std::string> names;
    for (std::size_t a = tag.find_first_not_of(' ', name.size()); a < tag.size(); a = tag.find_first_not_of(' ', a)) {
      const std::size_t equals = tag.find("=\"", a);
      const std::size_t quote = equals == std::string::npos ? equals : tag.find('"', equals + 2);
      if (quote == std::string::npos) return "attribute in <" + tag + ">";
      if (!names.insert(tag.substr(a, equals - a)).second) return "attribute twice in <" + tag + ">";
      a = quote + 1;
    }
    if (!is_empty) open.push_back(name);
  }
  if (!open.empty()) return open.back() + " is not closed";
  return roots == 1 ? "" : "not one root";
}

}  // namespace shoal::testing
