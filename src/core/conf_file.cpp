// SPDX-License-Identifier: Apache-2.0
#include "core/conf_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <set>

#include "core/split.h"
#include "core/status.h"

namespace shoal {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;  // bytes that are read of a file
constexpr const char* kSystemFile = "/etc/nccl.conf";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool is_ours(std::string_view name) { return name.starts_with("NCCL_") || name.starts_with("SHOAL_"); }

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Nothing where there is no such file, which only `wanted` makes a complaint.
void add_file(const std::string& path, bool wanted, ConfFile& into) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) {
    text.resize(kMaxFile);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
  } else if (wanted) {
    into.complaints.push_back(fmt::format("NCCL_CONF_FILE='{}': {}; going on without it", path, errno_text(errno)));
  }
  ConfFile found = parse_conf_file(text, path);
  into.values.merge(found.values);  // keeps what is there already
  into.complaints.insert(into.complaints.end(), found.complaints.begin(), found.complaints.end());
}

const ConfFile& files_of_this_process() {
  static const ConfFile once = [] {
    ConfFile all;
    const char* ours = std::getenv("SHOAL_CONF_FILE");
    const char* chosen = ours != nullptr && *ours != '\0' ? ours : std::getenv("NCCL_CONF_FILE");
    const char* home = std::getenv("HOME");
    if (chosen != nullptr && *chosen != '\0')
      add_file(chosen, true, all);
    else if (home != nullptr && *home != '\0')
      add_file(std::string(home) + "/.nccl.conf", false, all);
    add_file(kSystemFile, false, all);
    return all;
  }();
  return once;
}

}  // namespace

ConfFile parse_conf_file(std::string_view text, std::string_view path) {
  ConfFile found;
  int number = 0;
  for (const std::string_view whole : split(text, '\n')) {
    ++number;
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    const std::string_view name = trimmed(line.substr(0, equals));
    const std::string_view value = equals == std::string_view::npos ? "" : trimmed(line.substr(equals + 1));
    if (equals == std::string_view::npos || !is_name(name) || value.find('\0') != std::string_view::npos)
      found.complaints.push_back(fmt::format("{}:{}: '{}' is not KEY=VALUE; the line is left out", path, number, line));
    else if (is_ours(name))
      found.values.try_emplace(std::string(name), value);
  }
  return found;
}

std::optional<std::string> variable(const char* name) {
  if (const char* value = std::getenv(name); value != nullptr) return value;
  const std::string_view wanted = name;
  constexpr std::string_view kOurs = "SHOAL_";
  if (wanted.starts_with(kOurs) && std::getenv(("NCCL_" + std::string(wanted.substr(kOurs.size()))).c_str()) != nullptr)
    return std::nullopt;
  const auto found = files_of_this_process().values.find(name);
  return found == files_of_this_process().values.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> variables_set() {
  std::set<std::string> names;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view entry = *each;
    if (const std::string_view name = entry.substr(0, entry.find('=')); is_ours(name)) names.emplace(name);
  }
  for (const auto& [name, value] : files_of_this_process().values) names.insert(name);
  return {names.begin(), names.end()};
}

const std::vector<std::string>& conf_complaints() { return files_of_this_process().complaints; }

}  // namespace shoal
