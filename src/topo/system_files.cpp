// SPDX-License-Identifier: Apache-2.0
#include "topo/system_files.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace shoal::topo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLines = 1 << 16;

bool comes_before(const std::string& a, const std::string& b) { return ::strverscmp(a.c_str(), b.c_str()) < 0; }

}  // namespace

std::vector<std::string> SystemFiles::lines(const std::string& path) const {
  std::vector<std::string> all;
  std::ifstream file(root_ + path);
  for (std::string line; all.size() < kMostLines && std::getline(file, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    all.push_back(std::move(line));
  }
  return all;
}

std::optional<std::string> SystemFiles::line(const std::string& path) const {
  std::string line;
  std::ifstream file(root_ + path);
  if (!std::getline(file, line)) return std::nullopt;
  line.erase(line.find_last_not_of(" \t\r") + 1);
  return line;
}

std::optional<std::int64_t> SystemFiles::number(const std::string& path) const {
  const std::optional<std::string> text = line(path);
  if (!text) return std::nullopt;
  std::int64_t value = -1;
  if (std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{} || value < 0) return std::nullopt;
  return value;
}

std::vector<std::string> SystemFiles::names_in(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(root_ + folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end(), comes_before);
  return names;
}

std::optional<std::string> SystemFiles::target(const std::string& path) const {
  std::error_code error;
  const std::string real = fs::canonical(root_ + path, error).string();
  if (error) return std::nullopt;
  const std::string base = root_.empty() ? "" : fs::canonical(root_, error).string();
  if (error || !real.starts_with(base)) return std::nullopt;
  return real.substr(base.size());
}

}  // namespace shoal::topo
