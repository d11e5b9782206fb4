// SPDX-License-Identifier: Apache-2.0
// The kernel's small files, under a root folder so that tests can show other machines. Whatever cannot be read is nothing. Value
// type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::topo {

class SystemFiles {
 public:
  // `root`: where /sys and /proc are found; "": this machine's.
  explicit SystemFiles(std::string root) : root_(std::move(root)) {}

  bool is_this_machine() const { return root_.empty(); }
  const std::string& root() const { return root_; }

  // The first line, without blanks at its end.
  std::optional<std::string> line(const std::string& path) const;
  std::vector<std::string> lines(const std::string& path) const;
  // A whole number at the line's start; nothing for negative ones, which the kernel writes for "unknown".
  std::optional<std::int64_t> number(const std::string& path) const;
  std::vector<std::string> names_in(const std::string& folder) const;  // sorted, numbers inside names by value
  // Where a path leads, links followed, without the root; nothing if it does not exist.
  std::optional<std::string> target(const std::string& path) const;

 private:
  std::string root_;
};

}  // namespace shoal::topo
