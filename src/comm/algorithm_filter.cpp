// SPDX-License-Identifier: Apache-2.0
#include "comm/algorithm_filter.h"

#include <algorithm>

#include "core/split.h"

namespace shoal::comm {
namespace {

using algorithms::Algorithm;
using plan::Collective;

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string without_underscores(std::string_view text) {
  std::string plain = in_lower_case(text);
  std::erase(plain, '_');
  return plain;
}

// "AllReduce", "all_reduce" and "allreduce" are one.
std::optional<Collective> function_named(std::string_view text) {
  for (int c = 0; c < plan::kCollectives; ++c)
    if (without_underscores(plan::name_of(static_cast<Collective>(c))) == without_underscores(text)) return Collective(c);
  return std::nullopt;
}

bool is_nccls_alone(std::string_view name) {
  for (const std::string_view each : {"collnetdirect", "collnetchain", "nvls", "nvlstree"})
    if (name == each) return true;
  return false;
}

// Whether a name of the list, in lower case, means this algorithm.
bool means(std::string_view name, const Algorithm& algorithm) {
  if (name == algorithm.name) return true;
  if (name == "ring") return algorithm.name.ends_with("rings");
  if (name == "tree") return algorithm.name.ends_with("tree") || algorithm.name == "binomial";
  return false;
}

bool is_known(std::string_view name) {
  if (is_nccls_alone(name) || name == "tree") return true;
  return std::any_of(algorithms::all().begin(), algorithms::all().end(),
                     [&](const Algorithm& each) { return means(name, each); });
}

std::string known_names() {
  std::vector<std::string_view> names;
  for (const Algorithm& each : algorithms::all())
    if (std::find(names.begin(), names.end(), each.name) == names.end()) names.push_back(each.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<AlgorithmFilter> AlgorithmFilter::parse(std::string_view variable, std::string_view text) {
  AlgorithmFilter filter;
  if (text.empty()) return filter;
  const auto refuse = [&](std::string_view part, std::string_view what) {
    return fail(Code::invalid_argument,
                "{}='{}': '{}' is no {}; allowed is [function:][^]name,name...;function:..., the names being: {}", variable, text,
                part, what, known_names());
  };
  bool first = true;
  for (const std::string_view entry : split(text, ';')) {
    const std::size_t colon = entry.find(':');
    const bool named = colon != std::string_view::npos;
    if (!named && !first) return refuse(entry, "function and list: only the first entry may lack its function");
    first = false;
    std::optional<Collective> function;
    if (named) {
      function = function_named(entry.substr(0, colon));
      if (!function) return refuse(entry.substr(0, colon), "function");
    }
    std::string_view list = named ? entry.substr(colon + 1) : entry;
    const bool all_but = list.starts_with('^');
    if (all_but) list.remove_prefix(1);
    std::vector<std::string> names;
    for (const std::string_view name : split(list, ',')) {
      names.push_back(in_lower_case(name));
      if (!is_known(names.back())) return refuse(name, "algorithm");
    }
    for (int c = 0; c < plan::kCollectives; ++c) {
      if (function && *function != Collective(c)) continue;
      auto& allowed = filter.allowed_[static_cast<std::size_t>(c)];
      allowed.clear();
      bool exact = false;  // a name of ours stands for itself: "ring" forces the ring where there is one
      for (const Algorithm& each : algorithms::all())
        if (each.collective == Collective(c)) exact |= std::find(names.begin(), names.end(), each.name) != names.end();
      for (const Algorithm& each : algorithms::all()) {
        if (each.collective != Collective(c)) continue;
        const bool listed = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
          return exact && !all_but && names.size() == 1 ? name == each.name : means(name, each);
        });
        if (listed != all_but) allowed.push_back(&each);
      }
    }
  }
  return filter;
}

bool AlgorithmFilter::allows(const Algorithm& algorithm) const {
  const auto& allowed = allowed_[static_cast<std::size_t>(algorithm.collective)];
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), &algorithm) != allowed.end();
}

const Algorithm* AlgorithmFilter::only(Collective collective) const {
  const auto& allowed = allowed_[static_cast<std::size_t>(collective)];
  return allowed.size() == 1 ? allowed.front() : nullptr;
}

}  // namespace shoal::comm
