// SPDX-License-Identifier: Apache-2.0
#include "comm/process.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <vector>

namespace shoal::comm {
namespace {

cpu_set_t only(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return set;
}

}  // namespace

TEST_CASE("process: ranks that are bound to processors of their own share all of them") {
  cpu_set_t allowed;
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  if (processors.size() < 2) return;  // nothing to share here

  std::array<int, 2> bound{};
  REQUIRE(pipe(bound.data()) == 0);
  const pid_t other = fork();
  if (other == 0) {
    const cpu_set_t mine = only(processors[1]);
    const bool done = sched_setaffinity(0, sizeof mine, &mine) == 0 && write(bound[1], "x", 1) == 1;
    while (done) pause();
    _exit(1);
  }
  char ready = 0;
  REQUIRE(read(bound[0], &ready, 1) == 1);
  const cpu_set_t mine = only(processors[0]);
  REQUIRE(sched_setaffinity(0, sizeof mine, &mine) == 0);

  const link::PeerIdentity self{.rank = {0}, .host_id = "here", .pid = getpid()};
  const link::PeerIdentity peer{.rank = {1}, .host_id = "here", .pid = other};
  const link::PeerIdentity elsewhere{.rank = {2}, .host_id = "there", .pid = other};
  CHECK(processors_shared(std::vector{self}, self) == 1);
  CHECK(processors_shared(std::vector{self, peer}, self) == 2);
  CHECK(processors_shared(std::vector{self, elsewhere}, self) == 1);

  CHECK(sched_setaffinity(0, sizeof allowed, &allowed) == 0);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  close(bound[0]);
  close(bound[1]);
}

}  // namespace shoal::comm
