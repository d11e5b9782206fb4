// SPDX-License-Identifier: Apache-2.0
// Field cases FC-25 to FC-27: who shares memory with whom, what a rank that fails inside init means for the others, and memory
// that is not there.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "network/hosts.h"
#include "network/rounds.h"

using namespace testing;

namespace {

bool skipped() {
  if (why_no_hosts().empty()) return false;
  WARN("SKIP: no namespaces: " << why_no_hosts());
  return true;
}

std::string sums(const Ranks& who) {
  return with_comm(who, [&](ncclComm_t comm) {
    std::string wrong;
    for (const std::size_t count : {1U, 1000U, 1U << 20})
      if (wrong.empty()) wrong = all_reduce_once(comm, who, count);
    return wrong;
  });
}

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "shoal_network_XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string all_text() const {
    std::ostringstream text;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) text << std::ifstream(entry.path()).rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path path_;
};

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  setrlimit(static_cast<__rlimit_resource_t>(resource), &both);
}

}  // namespace

TEST_CASE("FC-25: ranks whose mounts differ share memory all the same; nothing depends on /dev/shm") {
  if (skipped()) return;
  const Folder logs;
  const std::string wrong = with_hosts(60, [&]() -> std::string {
    return as_processes(2, {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "ALL"}, {"NCCL_DEBUG_FILE", logs / "%p"}}, 40, sums, {},
                        [](int) {
                          if (unshare(CLONE_NEWNS) != 0 || mount("none", "/dev/shm", "tmpfs", 0, "size=64k") != 0)
                            throw std::runtime_error("no mount of its own");
                        });
  });
  CHECK(wrong == "");
  CHECK_THAT(logs.all_text(), Catch::Contains(" by shm") && !Catch::Contains(" by tcp"));
}

TEST_CASE("FC-25: two hosts of the same name, or that are told to be the same, talk over TCP and say so once a rank") {
  if (skipped()) return;
  const std::string host_id = GENERATE("", "we are one");
  const Folder logs;
  const std::string wrong = with_hosts(60, [&]() -> std::string {
    const Host a("twin.x"), b("twin.x");
    a.cable("eth0", b, "eth0");
    a.run("ip addr add 10.77.0.1/24 dev eth0 && mount -t tmpfs none /dev/shm");
    b.run("ip addr add 10.77.0.2/24 dev eth0 && mount -t tmpfs none /dev/shm");
    return as_processes(
        2,
        {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "INIT,NET"}, {"NCCL_DEBUG_FILE", logs / "%p"}, {"NCCL_HOSTID", host_id}},
        40, sums, {}, [&](int rank) { (rank == 0 ? a : b).enter(); });
  });
  CHECK(wrong == "");
  const std::string text = logs.all_text();
  CHECK(count(text, "1 ranks have this host's name but not its memory") == 2);
  CHECK_THAT(text, Catch::Contains(" by tcp") && !Catch::Contains(" by shm"));
}

TEST_CASE("FC-25: names that agree up to the first dot are two hosts; NCCL_HOSTID makes two of one") {
  if (skipped()) return;
  const std::string wrong = with_hosts(60, []() -> std::string {
    const Host a("a.x"), b("a.y");
    a.cable("eth0", b, "eth0");
    a.run("ip addr add 10.77.0.1/24 dev eth0");
    b.run("ip addr add 10.77.0.2/24 dev eth0");
    std::string result = as_processes(2, {}, 40, sums, {}, [&](int rank) { (rank == 0 ? a : b).enter(); });
    return result + as_processes(4, {}, 40, sums, {}, [](int rank) { setenv("NCCL_HOSTID", rank % 2 == 0 ? "even" : "odd", 1); });
  });
  CHECK(wrong == "");
}

TEST_CASE("FC-26: a rank that has no descriptor left inside init fails by itself, and the others at once, naming it") {
  const int room = GENERATE(2, 6, 12);  // descriptors beyond those that are open already
  CAPTURE(room);
  const auto stay_a_while = [](const Ranks& who) {  // so that those who come late find the root, and learn why
    std::string wrong = sums(who);
    if (who.rank == 0) std::this_thread::sleep_for(std::chrono::seconds(1));
    return wrong;
  };
  const std::string said = as_processes(4, {{"SHOAL_LOOPBACK_DISABLE", "1"}}, 60, stay_a_while, {}, [&](int rank) {
    if (rank == 2) limit(RLIMIT_NOFILE, static_cast<rlim_t>(open_descriptors() - 1 + room));
  });
  CHECK_THAT(said, Catch::Contains("rank 2: ncclCommInitRank: the operating system refused"));
  for (const char* other : {"rank 0: ", "rank 1: ", "rank 3: "})
    CHECK_THAT(said, Catch::Contains(std::string(other) +
                                     "ncclCommInitRank: another rank died, left or failed: ncclCommInitRank: rank 2 ("));
  CHECK_THAT(said, Catch::Contains(" failed: a communicator of 4 ranks needs 36 descriptors here, "));
  CHECK_THAT(said, !Catch::Contains("still running"));
}

TEST_CASE("FC-26: a rank that has no memory left inside init fails by itself, and the others at once, naming it") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("SKIP: a sanitizer needs all addresses");
#else
  const long room_kb = GENERATE(256, 2048);
  CAPTURE(room_kb);
  const std::string said = as_processes(
      4, {{"SHOAL_LOOPBACK_DISABLE", "1"}, {"NCCL_ALGO", "ring"}}, 60,
      [](const Ranks& who) {
        std::string wrong = sums(who);
        if (who.rank == 0) std::this_thread::sleep_for(std::chrono::seconds(1));
        return wrong;
      },
      {},
      [&](int rank) {
        long pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        if (rank == 2) limit(RLIMIT_AS, static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + room_kb * 1024));
      });
  CHECK_THAT(said, Catch::Contains("rank 2: "));
  for (const char* other : {"rank 0: ", "rank 1: ", "rank 3: "}) CHECK_THAT(said, Catch::Contains(other));
  CHECK_THAT(said, Catch::Contains("another rank died, left or failed: ncclCommInitRank: rank 2 (") ||
                       Catch::Contains("another rank died, left or failed: ncclAllReduce: rank 2 ("));
  CHECK_THAT(said, !Catch::Contains("still running") && !Catch::Contains("died of"));
#endif
}

TEST_CASE("FC-27: a full or tiny /dev/shm is nobody's concern") {
  if (skipped()) return;
  const auto [size, world] = GENERATE(table<std::string, int>({{"64k", 4}, {"1m", 8}, {"1m", 4}}));
  CAPTURE(size, world);
  const std::string wrong = with_hosts(80, [&, size = size, world = world]() -> std::string {
    shell("mount -t tmpfs -o size=" + size + " none /dev/shm; dd if=/dev/zero of=/dev/shm/full bs=4k 2>/dev/null; true");
    return as_processes(world, transport_variables("shm"), 60, sums);
  });
  CHECK(wrong == "");
}

// RLIMIT_FSIZE stands for memory that cannot be reserved: what the rings need is refused, what the doorbell needs is not.
TEST_CASE("FC-27: memory that cannot be reserved means TCP and a line that says so, never a signal") {
  const Folder logs;
  Variables variables = transport_variables("shm");
  for (const auto& [name, value] : Variables{{"NCCL_ALGO", "ring"}, {"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", logs / "%p"}})
    variables.emplace_back(name, value);
  CHECK(as_processes(4, variables, 60, sums, {}, [](int) { limit(RLIMIT_FSIZE, 65'536); }) == "");
  CHECK_THAT(logs.all_text(), Catch::Contains("cannot reserve ") && Catch::Contains("going on with tcp"));
}
