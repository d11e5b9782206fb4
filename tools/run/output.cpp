// SPDX-License-Identifier: Apache-2.0
#include "tools/run/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace shoal::run {
namespace {

bool is_regular(int fd) {
  struct stat info = {};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

Sink::Sink(int fd) : fd_(fd), terminal_(::isatty(fd) == 1), regular_(is_regular(fd)) {}

bool Sink::begin(const void* writer) {
  if (!line_start_ && last_writer_ != writer) add("\n");
  last_writer_ = writer;
  return line_start_;
}

void Sink::add(std::string_view bytes) {
  if (bytes.empty()) return;
  line_start_ = bytes.back() == '\n';
  if (!broken_) pending_ += bytes;
}

void Sink::write_some() {
  while (has_pending()) {
    const std::size_t left = pending_.size() - sent_;
    const std::size_t most = regular_ ? left : std::min<std::size_t>(left, PIPE_BUF);
    const ssize_t wrote = ::write(fd_, pending_.data() + sent_, most);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return;
    if (wrote < 0) {
      broken_ = true;
      pending_.clear();
      sent_ = 0;
      return;
    }
    sent_ += static_cast<std::size_t>(wrote);
    if (!regular_) break;  // one write for each time that poll said so
  }
  if (sent_ == pending_.size()) {
    pending_.clear();
    sent_ = 0;
  } else if (sent_ > kHighWater) {
    pending_.erase(0, sent_);
    sent_ = 0;
  }
}

void LineStream::take(std::string_view bytes, Sink& sink) {
  if (raw_) {
    sink.begin(this);
    sink.add(bytes);
    return;
  }
  const auto last = bytes.rfind('\n');
  if (last == std::string_view::npos) {
    buffer_ += bytes;
    if (buffer_.size() > kLongestLine) flush(sink);
    return;
  }
  std::string_view lines = bytes.substr(0, last + 1);
  if (!buffer_.empty()) {
    const auto first = lines.find('\n') + 1;
    buffer_ += lines.substr(0, first);
    flush(sink);
    lines.remove_prefix(first);
  }
  while (!lines.empty()) {
    const auto length = label_.empty() ? lines.size() : lines.find('\n') + 1;
    emit(lines.substr(0, length), sink);
    lines.remove_prefix(length);
  }
  buffer_ = bytes.substr(last + 1);
}

void LineStream::flush(Sink& sink) {
  if (!buffer_.empty()) emit(buffer_, sink);
  buffer_.clear();
}

void LineStream::emit(std::string_view piece, Sink& sink) {
  if (sink.begin(this)) sink.add(label_);
  sink.add(piece);
}

}  // namespace shoal::run
