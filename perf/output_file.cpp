// SPDX-License-Identifier: Apache-2.0
#include "perf/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

namespace shoal::perf {

NewFile::NewFile(const std::string& path) : path_(path) {
  constexpr int kMostNames = 10000;
  for (int i = 0; i <= kMostNames; ++i) {
    path_ = i == 0 ? path : fmt::format("{}.{}", path, i - 1);
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd_ >= 0) return;
    if (errno != EEXIST) break;
  }
  error_ = std::generic_category().message(errno);
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
}

bool NewFile::write(const std::string& text) {
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t wrote = ::write(fd_, left.data(), left.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      error_ = std::generic_category().message(errno);
      return false;
    }
    left.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

std::string replace_file(const std::string& path, const std::string& text) {
  const auto why = [] { return std::generic_category().message(errno); };
  const std::string part = fmt::format("{}.{}.part", path, ::getpid());
  std::FILE* file = std::fopen(part.c_str(), "wxe");
  if (file == nullptr) return why();
  const bool wrote = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && wrote && std::rename(part.c_str(), path.c_str()) == 0) return "";
  const std::string reason = why();
  std::remove(part.c_str());
  return reason;
}

}  // namespace shoal::perf
