// SPDX-License-Identifier: Apache-2.0
// The log reads its environment once, so that each case runs in a child process of its own.
#include "core/log.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

#include "core/environment.h"

using shoal::log::Level;

namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "shoal_log_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::filesystem::path path_;
};

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string short_host() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return std::string(name).substr(0, std::string(name).find('.'));
}

// Runs `body` in a child with these variables and its standard output in `out`; returns the child's number.
pid_t in_child(const std::map<std::string, std::string>& variables, const std::string& out, const std::function<void()>& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const char* name : {"NCCL_DEBUG", "SHOAL_DEBUG", "NCCL_DEBUG_FILE", "SHOAL_DEBUG_FILE", "NCCL_CONF_FILE", "HOME"})
      unsetenv(name);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const int file = open(out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(file, STDOUT_FILENO);
    body();
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  return child;
}

void one_of_each() {
  shoal::log::write(Level::version, -1, shoal::log::enabled(Level::version) ? "SHOAL version 1" : "");
  shoal::log::warn(2, "warned {}", 1);
  shoal::log::info(2, "informed {}", 2);
  shoal::log::info(-1, "of nobody");
  shoal::log::trace(2, "traced {}", 3);
}

}  // namespace

TEST_CASE("log: INFO lines have NCCL's form, on standard output by default") {
  const Folder folder;
  const pid_t child = in_child({{"NCCL_DEBUG", "INFO"}}, folder / "out", one_of_each);
  const std::string who = short_host() + ":" + std::to_string(child) + ":" + std::to_string(child) + " ";
  const std::string text = content(folder / "out");
  std::smatch parts;
  REQUIRE(std::regex_match(
      text, parts, std::regex(R"(SHOAL version 1\n\n\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] ([^\n]*)\n([^\n]*)\n([^\n]*)\n)")));
  CHECK_THAT(parts[1].str(), Catch::StartsWith(who + "[2] log_test.cpp:") && Catch::EndsWith(" one_of_each NCCL WARN warned 1"));
  CHECK(parts[2] == who + "[2] NCCL INFO informed 2");
  CHECK(parts[3] == who + "NCCL INFO of nobody");
}

TEST_CASE("log: each level shows itself and what is graver") {
  const Folder folder;
  const auto [level, warns, informs, traces] = GENERATE(table<std::string, bool, bool, bool>({{"", false, false, false},
                                                                                              {"VERSION", false, false, false},
                                                                                              {"WARN", true, false, false},
                                                                                              {"info", true, true, false},
                                                                                              {"TRACE", true, true, true}}));
  in_child({{"NCCL_DEBUG", level}}, folder / "out", one_of_each);
  const std::string text = content(folder / "out");
  CHECK((text.find("warned 1") != std::string::npos) == warns);
  CHECK((text.find("informed 2") != std::string::npos) == informs);
  CHECK((text.find("traced 3") != std::string::npos) == traces);
}

TEST_CASE("log: works although another variable is malformed, and is silent if its own is") {
  const Folder folder;
  in_child({{"NCCL_DEBUG", "WARN"}, {"SHOAL_CREDITS", "many"}}, folder / "good", one_of_each);
  CHECK_THAT(content(folder / "good"), Catch::Contains("warned 1"));
  in_child({{"NCCL_DEBUG", "LOUD"}}, folder / "bad", [] { shoal::log::warn(0, "heard"); });
  CHECK(content(folder / "bad").empty());
}

TEST_CASE("log: the file's name knows host, process and percent, and an old file is emptied") {
  const Folder folder;
  const std::string host = short_host();
  std::ofstream(folder / "plain") << "old\n";
  const pid_t child = in_child({{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", folder / "a%h-%p%%%x%"}}, folder / "out",
                               [] { shoal::log::info(1, "here"); });
  CHECK(content(folder / "out").empty());
  CHECK_THAT(content(folder / ("a" + host + "-" + std::to_string(child) + "%%x%")), Catch::EndsWith("[1] NCCL INFO here\n"));
  in_child({{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", folder / "plain"}}, folder / "out", [] { shoal::log::info(1, "here"); });
  CHECK_THAT(content(folder / "plain"), Catch::EndsWith("here\n") && !Catch::Contains("old"));
}

TEST_CASE("log: a file that cannot be opened leaves standard output and says so once") {
  const Folder folder;
  in_child({{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", folder / "no/such/folder"}}, folder / "out", [] {
    shoal::log::info(1, "first");
    shoal::log::info(1, "second");
  });
  const std::string text = content(folder / "out");
  CHECK_THAT(text, Catch::Contains("no/such/folder: No such file or directory (2)") && Catch::Contains("first") &&
                       Catch::Contains("second"));
  CHECK(text.find("No such file") == text.rfind("No such file"));
}

TEST_CASE("log: a forked child has its own process number and file, and does not empty its parent's") {
  const Folder folder;
  const auto log_and_fork = [] {
    shoal::log::info(0, "parent before");
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      shoal::log::info(1, "child");
      _exit(0);
    }
    int status = 0;
    waitpid(grandchild, &status, 0);
    shoal::log::info(0, "parent after");
  };
  in_child({{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", folder / "same"}}, folder / "out", log_and_fork);
  CHECK_THAT(content(folder / "same"),
             Catch::Contains("parent before") && Catch::Contains("child") && Catch::Contains("parent after"));
  in_child({{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", folder / "own.%p"}}, folder / "out", log_and_fork);
  const std::vector<std::string> names = folder.names();
  CHECK(std::count_if(names.begin(), names.end(), [](const std::string& n) { return n.starts_with("own."); }) == 2);
}

TEST_CASE("log: lines of several threads are never mixed") {
  const Folder folder;
  in_child({{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", folder / "all"}}, folder / "out", [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([t] {
        for (int i = 0; i < 200; ++i)
          shoal::log::info(t, "{}", std::string(100 + static_cast<std::size_t>(t), static_cast<char>('a' + t)));
      });
    for (std::thread& thread : threads) thread.join();
  });
  std::ifstream lines(folder / "all");
  std::map<std::string, int> seen;
  for (std::string line; std::getline(lines, line);) ++seen[line.substr(line.find("] NCCL INFO ") - 1)];
  CHECK(seen.size() == 4);
  for (int t = 0; t < 4; ++t)
    CHECK(seen[std::to_string(t) + "] NCCL INFO " + std::string(100 + static_cast<std::size_t>(t), static_cast<char>('a' + t))] ==
          200);
}

TEST_CASE("log: INFO is of the parts that NCCL_DEBUG_SUBSYS names, warnings of all") {
  const Folder folder;
  const auto speak = [] {
    shoal::log::info(shoal::log::Subsystem::net, 1, "of the net");
    shoal::log::info(shoal::log::Subsystem::bootstrap, 1, "of the bootstrap");
    shoal::log::warn(1, "warned");
  };
  const auto [subsystems, net, bootstrap] = GENERATE(table<std::string, bool, bool>({{"", false, true},
                                                                                     {"NET", true, false},
                                                                                     {"coll,net,unheard_of", true, false},
                                                                                     {"^NET", false, true},
                                                                                     {"ALL", true, true},
                                                                                     {"^ALL", false, false}}));
  CAPTURE(subsystems);
  in_child({{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", subsystems}}, folder / "out", speak);
  const std::string text = content(folder / "out");
  CHECK((text.find("of the net") != std::string::npos) == net);
  CHECK((text.find("of the bootstrap") != std::string::npos) == bootstrap);
  CHECK_THAT(text, Catch::Contains("warned"));
}

TEST_CASE("log: the time stands where the levels say, as the format says") {
  const Folder folder;
  in_child({{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_TIMESTAMP_LEVELS", "^WARN"}, {"NCCL_DEBUG_TIMESTAMP_FORMAT", "<%Y %3f> "}},
           folder / "out", [] {
             shoal::log::info(0, "timed");
             shoal::log::warn(0, "not timed");
           });
  std::smatch parts;
  const std::string text = content(folder / "out");
  CHECK(std::regex_match(text, parts, std::regex(R"(<\d{4} \d{3}> [^\n]* timed\n\n([^\n]*)\n)")));
  CHECK_THAT(parts[1].str(), Catch::StartsWith(short_host() + ":"));
}

TEST_CASE("log: the banner is rank 0's, from INFO on every process's, and comes once") {
  const Folder folder;
  const auto [level, of_zero, of_one] =
      GENERATE(table<std::string, int, int>({{"", 0, 0}, {"VERSION", 1, 0}, {"WARN", 1, 0}, {"INFO", 1, 1}, {"TRACE", 1, 1}}));
  CAPTURE(level);
  const auto lines = [&](int rank) {
    const std::string out = folder / std::to_string(rank);
    in_child({{"NCCL_DEBUG", level}}, out, [rank] {
      shoal::log::banner(rank, "the version");
      shoal::log::banner(rank, "the version");
    });
    const std::string text = content(out);
    return text.empty() ? 0 : text == "the version\n" ? 1 : -1;
  };
  CHECK(lines(0) == of_zero);
  CHECK(lines(1) == of_one);
}

TEST_CASE("log: settings may stand in a file, over which the environment wins, and a bad line is a warning with its place") {
  const Folder folder;
  std::ofstream(folder / "nccl.conf") << "# ours\nNCCL_DEBUG = INFO\nNCCL_DEBUG_FILE=" << folder / "from_file"
                                      << "\nnonsense\nNCCL_DEBUG=TRACE\nNCCL_BUFFSIZE=4194304\n";
  const auto speak = [] {
    (void)shoal::environment().is_ok();
    shoal::log::info(0, "informed");
  };
  in_child({{"NCCL_CONF_FILE", folder / "nccl.conf"}}, folder / "out", speak);
  const std::string text = content(folder / "from_file");
  CHECK_THAT(text, Catch::Contains("NCCL WARN " + (folder / "nccl.conf") + ":4: 'nonsense' is not KEY=VALUE") &&
                       Catch::Contains("without effect in this library: NCCL_BUFFSIZE\n") && Catch::EndsWith("informed\n"));
  in_child({{"NCCL_CONF_FILE", folder / "nccl.conf"}, {"NCCL_DEBUG", "WARN"}, {"NCCL_DEBUG_FILE", ""}}, folder / "out", speak);
  CHECK_THAT(content(folder / "out"), Catch::Contains("'nonsense'") && !Catch::Contains("informed"));
  in_child({{"NCCL_CONF_FILE", folder / "missing"}, {"NCCL_DEBUG", "WARN"}}, folder / "missed", speak);
  CHECK_THAT(content(folder / "missed"), Catch::Contains("missing': No such file or directory"));
  in_child({{"HOME", folder / "home"}}, folder / "nothing", speak);
  CHECK(content(folder / "nothing").empty());
}
