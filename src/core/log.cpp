// SPDX-License-Identifier: Apache-2.0
// One spdlog logger of our own over one sink of our own: each line is a single write(2), so that threads and processes that share
// a file never mix their lines, and so that no lock exists which a fork could copy while it is held.
#include "core/log.h"

#include <fcntl.h>
#include <sched.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/sink.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>

#include "core/conf_file.h"
#include "core/environment.h"
#include "core/status.h"

namespace shoal::log {
namespace {

struct Settings {
  Level level = Level::none;
  std::string file;  // with its % marks; empty: standard output
  std::uint32_t subsystems = 0;
  std::string time_format;
  std::uint32_t timed_levels = 0;
};

// Also right where some other variable is malformed: the line that says so must come out.
Settings read_settings() {
  const Result<Environment> own = parse_environment([](const char* name) {
    return std::string_view(name).find("_DEBUG") == std::string_view::npos ? std::nullopt : variable(name);
  });
  if (!own.is_ok()) return {};
  Settings settings;
  if (own->debug == "VERSION") settings.level = Level::version;
  if (own->debug == "WARN") settings.level = Level::warn;
  if (own->debug == "INFO") settings.level = Level::info;
  if (own->debug == "TRACE") settings.level = Level::trace;
  if (settings.level > Level::version) settings.file = own->debug_file;
  settings.subsystems = subsystems_from(own->debug_subsys);
  settings.time_format = own->debug_timestamp_format;
  settings.timed_levels = levels_from(own->debug_timestamp_levels);
  return settings;
}

const Settings& settings() {
  static const Settings once = read_settings();
  return once;
}

// Up to the first dot, as NCCL shows it.
std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "localhost";
  return std::string(name, strcspn(name, "."));
}

std::string expand(const std::string& file, const std::string& host, pid_t pid) {
  std::string path;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const char mark = file[i] == '%' && i + 1 < file.size() ? file[i + 1] : '\0';
    if (mark == 'h') path += host;
    if (mark == 'p') path += std::to_string(pid);
    if (mark == '%') path += '%';
    if (mark == 'h' || mark == 'p' || mark == '%')
      ++i;
    else
      path += file[i];
  }
  return path;
}

// Standard output, or a file that it owns. No lock: whole lines, each by one system call.
class LineSink final : public spdlog::sinks::sink {
 public:
  // `path` empty: standard output. A file that cannot be opened leaves standard output and an `error`.
  LineSink(const std::string& path, bool truncate) {
    if (path.empty()) return;
    file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (truncate ? O_TRUNC : 0), 0644);
    error_ = file_ < 0 ? errno : 0;
  }
  LineSink(const LineSink&) = delete;
  LineSink& operator=(const LineSink&) = delete;
  ~LineSink() override {
    if (file_ >= 0) close(file_);
  }

  int error() const { return error_; }

  void log(const spdlog::details::log_msg& line) override {
    const char* at = line.payload.data();
    std::size_t left = line.payload.size();
    while (left > 0) {  // a pipe may take a long line in pieces
      const ssize_t put = ::write(file_ >= 0 ? file_ : STDOUT_FILENO, at, left);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return;  // nobody to tell
      at += put;
      left -= static_cast<std::size_t>(put);
    }
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  int file_ = -1;
  int error_ = 0;
};

// What one process logs with. After a fork the child makes its own (other pid, perhaps another file) on top of its parent's,
// which stays as it is: a thread may be writing through it.
struct Logger {
  pid_t pid;
  std::string host;
  std::shared_ptr<LineSink> sink;
  spdlog::logger logger;
  std::unique_ptr<Logger> parent;

  Logger(pid_t process, std::string host_text, const std::string& path, bool truncate)
      : pid(process), host(std::move(host_text)), sink(std::make_shared<LineSink>(path, truncate)), logger("shoal", sink) {
    logger.set_level(spdlog::level::trace);  // filtered by enabled()
  }
};

std::unique_ptr<Logger> make_logger(const Logger* parent) {
  const pid_t pid = getpid();
  const std::string host = host_name();
  const std::string path = expand(settings().file, host, pid);
  const bool continues_parents = parent != nullptr && path == expand(settings().file, parent->host, parent->pid);
  auto made = std::make_unique<Logger>(pid, host, path, !continues_parents);
  if (made->sink->error() != 0)
    made->logger.info("{}:{}:{} NCCL WARN NCCL_DEBUG_FILE: open {}: {}; logging to standard output\n", host, pid, gettid(), path,
                      errno_text(made->sink->error()));
  return made;
}

// Never freed: threads may log until the very end of the process. One thread of a process makes its logger, which may empty the
// file; the others wait for it. What a fork cuts short is the parent's, and the child makes its own.
Logger& this_process() {
  static std::atomic<Logger*> current{nullptr};
  static std::atomic<pid_t> maker{0};  // the process whose logger is made or being made
  const pid_t pid = getpid();
  for (;;) {
    Logger* seen = current.load(std::memory_order_acquire);
    if (seen != nullptr && seen->pid == pid) return *seen;
    pid_t last = maker.load();
    if (last != pid && maker.compare_exchange_strong(last, pid)) {
      try {
        std::unique_ptr<Logger> made = make_logger(seen);
        made->parent.reset(seen);
        current.store(made.get(), std::memory_order_release);
        return *made.release();
      } catch (...) {
        maker.store(last);  // another thread may have more luck
        throw;
      }
    }
    sched_yield();
  }
}

// The function's own name out of what the compiler makes of it: "shoal::Status shoal::comm::f(int)" is "f".
std::string_view short_name(std::string_view function) {
  const std::string_view before = function.substr(0, function.find('('));
  const std::size_t last = before.find_last_of(": ");
  return last == std::string_view::npos ? before : before.substr(last + 1);
}

std::string_view file_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

std::string time_of(Level level) {
  if ((settings().timed_levels >> static_cast<int>(level) & 1) == 0) return {};
  return format_time(settings().time_format, std::chrono::system_clock::now());
}

}  // namespace

bool enabled(Level level) { return level <= settings().level; }

bool enabled(Level level, Subsystem part) { return enabled(level) && (settings().subsystems >> static_cast<int>(part) & 1) != 0; }

void write(Level level, int rank, std::string_view text, Place where) {
  Logger& own = this_process();
  const std::string about = rank < 0 ? std::string() : fmt::format("[{}] ", rank);
  const std::string who = fmt::format("{}{}:{}:{} {}", time_of(level), own.host, own.pid, gettid(), about);
  switch (level) {
    case Level::none: return;
    case Level::version: return own.logger.info("{}\n", text);
    case Level::warn:
      return own.logger.warn("\n{}{}:{} {} NCCL WARN {}\n", who, file_name(where.file), where.line, short_name(where.function),
                             text);
    case Level::info: return own.logger.info("{}NCCL INFO {}\n", who, text);
    case Level::trace: return own.logger.trace("{}NCCL TRACE {}\n", who, text);
  }
}

void banner(int rank, std::string_view version) {
  static std::atomic<pid_t> shown{0};  // by which process
  if (!enabled(Level::version) || (rank != 0 && !enabled(Level::info))) return;
  if (shown.exchange(getpid()) != getpid()) write(Level::version, rank, version);
}

}  // namespace shoal::log
