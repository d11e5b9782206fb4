// SPDX-License-Identifier: Apache-2.0
// The ranks' output on its way to the launcher's: whole lines, labelled, bytes untouched. Single-threaded: both classes
// belong to the launcher's event loop.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal::run {

// Standard output or standard error of the launcher. Never blocks for long: text waits in memory until the descriptor is
// ready, and full() asks the event loop to stop reading from the ranks meanwhile.
class Sink {
 public:
  explicit Sink(int fd);
  int fd() const { return fd_; }
  bool is_terminal() const { return terminal_; }
  bool has_pending() const { return !broken_ && sent_ < pending_.size(); }
  bool full() const { return pending_.size() - sent_ > kHighWater; }
  bool broken() const { return broken_; }  // nobody reads any more; what is added is dropped

  // Announces a piece by `writer`. Ends the unfinished line of another writer, if there is one. True: at the start of a line.
  bool begin(const void* writer);
  void add(std::string_view bytes);
  // Writes what the descriptor takes. Call when poll says it is writable.
  void write_some();

 private:
  static constexpr std::size_t kHighWater = std::size_t{1} << 20;
  int fd_;
  bool terminal_;
  bool regular_;  // a file takes any amount at once; a pipe that polls writable takes 4096 bytes without blocking
  bool broken_ = false;
  bool line_start_ = true;
  const void* last_writer_ = nullptr;
  std::string pending_;
  std::size_t sent_ = 0;
};

// One stream of one rank. Holds back unfinished lines, so that lines of two ranks never mix.
class LineStream {
 public:
  // `label` goes before each line. `raw`: nothing is held back or labelled (a single rank).
  LineStream(std::string label, bool raw) : label_(std::move(label)), raw_(raw) {}

  void take(std::string_view bytes, Sink& sink);
  // Passes an unfinished line on: at the end of the stream, or a prompt on a terminal.
  void flush(Sink& sink);
  bool holds_partial() const { return !buffer_.empty(); }

 private:
  void emit(std::string_view piece, Sink& sink);

  // A line longer than this comes in pieces between which other ranks' lines may stand.
  static constexpr std::size_t kLongestLine = std::size_t{16} << 20;
  std::string label_;
  bool raw_;
  std::string buffer_;  // holds no newline
};

}  // namespace shoal::run
