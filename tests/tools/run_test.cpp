// SPDX-License-Identifier: Apache-2.0
// shoal-run as its users meet it: the built program, with shells as ranks.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "tools/spawn.h"

using namespace shoal::testing;
using Words = std::vector<std::string>;

namespace {

Finished run(Words arguments, const SpawnOptions& options = {}) {
  arguments.insert(arguments.begin(), SHOAL_RUN);
  return spawn(arguments, options);
}

Finished run_shell(const Words& head, const std::string& script, const SpawnOptions& options = {}) {
  Words arguments = head;
  arguments.insert(arguments.end(), {"sh", "-c", script});
  return run(arguments, options);
}

std::set<std::string> set_of_lines(const std::string& text) {
  const auto lines = lines_of(text);
  return {lines.begin(), lines.end()};
}

bool is_running(pid_t pid) {  // zombies are not
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return static_cast<bool>(stat >> number >> name >> state) && state != "Z";
}

bool ends_soon(pid_t pid) {
  for (int i = 0; i < 250 && is_running(pid); ++i) ::usleep(20000);
  return !is_running(pid);
}

// A directory of its own that goes with the test.
struct Scratch {
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "shoal-run-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  pid_t number_in(const std::string& name) const {
    std::ifstream file(path / name);
    pid_t pid = 0;
    file >> pid;
    return pid;
  }
  std::filesystem::path path;
};

}  // namespace

TEST_CASE("each rank finds its place, and all find the same job and secret") {
  const auto done = run_shell(
      {"-n", "3", "--no-label"},
      "echo $SHOAL_RANK $SHOAL_WORLD_SIZE $SHOAL_LOCAL_RANK $SHOAL_LOCAL_WORLD_SIZE; echo job $SHOAL_JOB $SHOAL_SECRET");
  CHECK(done.code == 0);
  const auto lines = set_of_lines(done.out);
  REQUIRE(lines.size() == 4);
  for (const char* line : {"0 3 0 3", "1 3 1 3", "2 3 2 3"}) CHECK(lines.count(line) == 1);
  const std::string job = *lines.rbegin();
  CHECK(job.size() == 4 + 32 + 1 + 64);
  CHECK(job.find_first_not_of("0123456789abcdefjo ") == std::string::npos);
  const auto again = run_shell({"-n", "1"}, "echo job $SHOAL_JOB $SHOAL_SECRET");
  CHECK(again.out != job + "\n");
}

TEST_CASE("variables of an outer job are replaced, other ones stay") {
  const auto done =
      run_shell({"-n", "1"}, "echo $SHOAL_RANK $SHOAL_WORLD_SIZE $SHOAL_SECRET_OF_MINE; env | grep -c ^SHOAL_RANK=",
                {.environment = {{"SHOAL_RANK", "7"}, {"SHOAL_WORLD_SIZE", "9"}, {"SHOAL_SECRET_OF_MINE", "kept"}}});
  CHECK(done.out == "0 1 kept\n1\n");
}

TEST_CASE("rank 0 speaks without a label by default, the others with theirs; the two streams stay apart") {
  const std::string script = "echo out $SHOAL_RANK; echo err $SHOAL_RANK >&2";
  const auto standard = run_shell({"-n", "2"}, script);
  CHECK(set_of_lines(standard.out) == std::set<std::string>{"out 0", "[1] out 1"});
  CHECK(set_of_lines(standard.err) == std::set<std::string>{"err 0", "[1] err 1"});
  CHECK(set_of_lines(run_shell({"-n", "2", "--label"}, script).out) == std::set<std::string>{"[0] out 0", "[1] out 1"});
  CHECK(set_of_lines(run_shell({"-n", "2", "--no-label"}, script).out) == std::set<std::string>{"out 0", "out 1"});
}

TEST_CASE("a hundred thousand lines a rank arrive whole and in order") {
  const auto done = run_shell({"-n", "2"}, "i=0; seq 1 100000");
  CHECK(done.code == 0);
  int next_0 = 1, next_1 = 1, wrong = 0;
  for (const std::string& line : lines_of(done.out)) {
    if (line == std::to_string(next_0)) {
      ++next_0;
    } else if (line == "[1] " + std::to_string(next_1)) {
      ++next_1;
    } else {
      ++wrong;
    }
  }
  CHECK(wrong == 0);
  CHECK(next_0 == 100001);
  CHECK(next_1 == 100001);
}

TEST_CASE("binary output and a missing last newline pass through") {
  const auto done = run_shell({"-n", "1"}, "printf 'a\\000b\\377\\n\\nend'");
  CHECK(done.out == std::string("a\0b\xff\n\nend", 9));
}

TEST_CASE("standard input goes to rank 0 only") {
  Scratch scratch;
  const auto file = scratch.path / "input";
  std::ofstream(file) << "from the file\n";
  const auto done = run_shell({"-n", "2"}, "echo \"got $(cat)\"", {.input = file.string()});
  CHECK(set_of_lines(done.out) == std::set<std::string>{"got from the file", "[1] got "});
}

TEST_CASE("a failing rank gives the exit code, is named in one line, and the others are ended") {
  const auto done = run_shell({"-n", "3"}, "[ $SHOAL_RANK = 1 ] && exit 3; exec sleep 50");
  CHECK(done.code == 3);
  const auto lines = lines_of(done.err);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("shoal-run: rank 1 (pid ") == 0);
  CHECK(lines[0].find(") exited with status 3") != std::string::npos);
}

TEST_CASE("a rank that dies of a signal gives 128 and its number") {
  const auto done = run_shell({"-n", "2"}, "[ $SHOAL_RANK = 1 ] && kill -9 $$; exec sleep 50");
  CHECK(done.code == 128 + SIGKILL);
  CHECK(done.err.find("rank 1 (pid ") != std::string::npos);
  CHECK(done.err.find("was ended by signal 9 (SIGKILL)") != std::string::npos);
}

TEST_CASE("ranks that fail by themselves right after the first one still have their say") {
  const auto done = run_shell({"-n", "2"}, "[ $SHOAL_RANK = 1 ] && exit 5; sleep 0.05; echo last words; exit 6");
  CHECK(done.code == 5);
  CHECK(done.out == "last words\n");
}

TEST_CASE("a rank that ignores SIGTERM is killed after the grace, with what it started") {
  Scratch scratch;
  const std::string directory = scratch.path.string();
  const auto done = run_shell({"-n", "2"}, "[ $SHOAL_RANK = 1 ] && sleep 0.3 && exit 4; trap '' TERM; sleep 60 & echo $! > " +
                                               directory + "/child; wait; sleep 60");
  CHECK(done.code == 4);
  CHECK(done.err.find("killed 3 s after SIGTERM: rank 0") != std::string::npos);
  const pid_t child = scratch.number_in("child");
  REQUIRE(child > 0);
  CHECK(ends_soon(child));
}

TEST_CASE("processes that a rank leaves behind may finish their output but do not hold the launcher up") {
  Scratch scratch;
  const auto done = run_shell({"-n", "2"}, "(sleep 0.1; echo late $SHOAL_RANK; sleep 60) & [ $SHOAL_RANK = 0 ] && echo $! > " +
                                               scratch.path.string() + "/child; exit 0");
  CHECK(done.code == 0);
  CHECK(set_of_lines(done.out) == std::set<std::string>{"late 0", "[1] late 1"});
  CHECK(ends_soon(scratch.number_in("child")));
}

TEST_CASE("a timeout ends all with 124 and says who was still running") {
  const auto done = run_shell({"-n", "4", "--timeout", "0.5"}, "[ $SHOAL_RANK = 2 ] && exit 0; exec sleep 50");
  CHECK(done.code == 124);
  CHECK(done.err == "shoal-run: timeout after 0.5 s: still running: rank 0-1,3\n");
}

TEST_CASE("a job that ends in time does not notice its timeout") {
  const auto done = run_shell({"-n", "2", "--timeout", "30"}, "exit 0");
  CHECK(done.code == 0);
  CHECK(done.err.empty());
}

TEST_CASE("signals are passed on to all ranks, each once") {
  for (const auto& [number, name] : std::vector<std::pair<int, std::string>>{
           {SIGINT, "INT"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}}) {
    CAPTURE(name);
    bool sent = false;
    SpawnOptions options;
    options.watch = [&, signal = number](pid_t pid, const std::string& out) {
      const auto lines = set_of_lines(out);
      if (sent || lines.count("ready") == 0 || lines.count("[1] ready") == 0) return;
      ::kill(pid, signal);
      sent = true;
    };
    const auto done = run_shell(
        {"-n", "2", "--timeout", "20"},
        "n=0; trap 'n=$((n+1))' " + name + "; echo ready; while [ $n = 0 ]; do sleep 0.05; done; sleep 0.2; echo got $n",
        options);
    CHECK(done.code == 0);  // the shell may tell of its sleep, which got the signal, too
    CHECK(done.err.find("shoal-run:") == std::string::npos);
    CHECK(set_of_lines(done.out) == std::set<std::string>{"ready", "[1] ready", "got 1", "[1] got 1"});
  }
}

TEST_CASE("a second interrupt ends ranks that ignore the first") {
  int sent = 0;
  SpawnOptions options;
  options.watch = [&](pid_t pid, const std::string& out) {
    if (sent < 2 && set_of_lines(out).count("ready") == 1) {
      ::kill(pid, SIGINT);
      ++sent;
      ::usleep(100000);
    }
  };
  const auto done = run_shell({"-n", "1", "--timeout", "40"}, "trap '' INT; echo ready; while :; do sleep 0.1; done", options);
  CHECK(done.code == 128 + SIGINT);
}

TEST_CASE("ranks die with a launcher that is killed") {
  Scratch scratch;
  const std::string directory = scratch.path.string();
  bool sent = false;
  SpawnOptions options;
  options.watch = [&](pid_t pid, const std::string& out) {
    if (sent || set_of_lines(out).size() < 2) return;
    ::kill(pid, SIGKILL);
    sent = true;
  };
  const auto done = run_shell({"-n", "2"}, "echo $$ > " + directory + "/$SHOAL_RANK; echo ready; exec sleep 60", options);
  CHECK(done.code == 128 + SIGKILL);
  for (const char* rank : {"0", "1"}) {
    const pid_t pid = scratch.number_in(rank);
    REQUIRE(pid > 0);
    CHECK(ends_soon(pid));
  }
}

TEST_CASE("a reader that leaves ends the job quietly") {
  const auto done = spawn({"sh", "-c", std::string(SHOAL_RUN) + " -n 2 yes | head -n 1; exit 0"});
  CHECK(done.code == 0);
  CHECK(done.err.empty());
  CHECK(lines_of(done.out).size() == 1);
}

TEST_CASE("core binding gives ranks their cores in turn") {
  const auto cores = lines_of(spawn({"nproc"}).out);
  const auto done = run_shell({"-n", "2", "--bind", "core", "--no-label"}, "nproc");
  CHECK(done.out == "1\n1\n");
  REQUIRE(cores.size() == 1);
  CHECK(run_shell({"-n", "1"}, "nproc").out == cores[0] + "\n");
}

TEST_CASE("a command line that is refused gives one line that names option and value, and starts nothing") {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"-n", "0", "true"}, "shoal-run: -n/--ranks 0: must be at least 1\n"},
      {{"-n", "x", "true"}, "shoal-run: -n/--ranks x: is not a whole number\n"},
      {{"-n", "99999", "true"}, "shoal-run: -n/--ranks 99999: must be at most 4096\n"},
      {{"-n", "", "true"}, "shoal-run: -n/--ranks '': is not a whole number\n"},
      {{"-n", "2", "--timeout", "x", "true"}, "shoal-run: -t/--timeout x: is not a number of seconds\n"},
      {{"-n", "2", "--bind", "x", "true"}, "shoal-run: --bind x: is none of: none core\n"},
      {{"-n", "2", "--nosuch", "true"}, "shoal-run: --nosuch: is no option of this program\n"},
      {{"-n", "2"}, "shoal-run: there is no command to run (shoal-run --help)\n"},
      {{"-n", "2", "--"}, "shoal-run: there is no command to run (shoal-run --help)\n"},
      {{"true"}, "shoal-run: -n/--ranks is missing: how many processes? (shoal-run --help)\n"},
      {{"-n", "2", "--label", "--no-label", "true"}, "shoal-run: --label and --no-label exclude each other\n"},
  };
  for (const auto& [arguments, line] : cases) {
    CAPTURE(arguments);
    const auto done = run(arguments);
    CHECK(done.code == 2);
    CHECK(done.err == line);
    CHECK(done.out.empty());
  }
}

TEST_CASE("a command that does not exist is 127, one that may not run is 126, in one line") {
  const auto missing = run({"-n", "3", "no-such-program-here"});
  CHECK(missing.code == 127);
  CHECK(missing.err == "shoal-run: no-such-program-here: No such file or directory\n");
  const auto forbidden = run({"-n", "3", "/etc/passwd"});
  CHECK(forbidden.code == 126);
  CHECK(forbidden.err == "shoal-run: /etc/passwd: Permission denied\n");
}

TEST_CASE("too few descriptors are one line before anything starts") {
  const auto done = spawn({"sh", "-c", "ulimit -n 100; exec " + std::string(SHOAL_RUN) + " -n 64 true"});
  CHECK(done.code == 2);
  CHECK(done.err == "shoal-run: -n/--ranks 64: needs 160 descriptors, the limit is 100 (ulimit -n)\n");
}

TEST_CASE("a low soft limit of descriptors is raised for the launcher and kept for the ranks") {
  const auto done =
      spawn({"sh", "-c", "ulimit -S -n 40; exec " + std::string(SHOAL_RUN) + " -n 20 --no-label sh -c 'ulimit -S -n'"});
  CHECK(done.code == 0);
  CHECK(lines_of(done.out) == std::vector<std::string>(20, "40"));
}

TEST_CASE("the launcher leaves no descriptor of its own in the ranks") {
  const std::string count = "ls /proc/self/fd | wc -l";
  const std::string alone = spawn({"sh", "-c", count}).out;
  CHECK(run_shell({"-n", "2", "--no-label"}, count).out == alone + alone);
}

TEST_CASE("shoal-topo describes this machine and refuses options in one line") {
  const auto done = spawn({SHOAL_TOPO});
  CHECK(done.code == 0);
  CHECK_FALSE(lines_of(done.out).empty());
  const auto refused = spawn({SHOAL_TOPO, "--nosuch"});
  CHECK(refused.code == 2);
  CHECK(refused.err == "shoal-topo: --nosuch: is no option of this program\n");
}
