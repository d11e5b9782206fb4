// SPDX-License-Identifier: Apache-2.0
// Files that a run leaves behind. Rank 0 only.
#pragma once

#include <string>

namespace shoal::perf {

// A file that did not exist before: `path`, else `path`.0, `path`.1, ... Opened early, so that a bad path shows before the
// measurements; written at the end.
class NewFile {
 public:
  explicit NewFile(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::string& error() const { return error_; }  // "" if open
  const std::string& path() const { return path_; }
  bool write(const std::string& text);  // whole, once

 private:
  std::string path_, error_;
  int fd_ = -1;
};

// Writes a file anew, whole or not at all. "" or why not.
std::string replace_file(const std::string& path, const std::string& text);

}  // namespace shoal::perf
