// SPDX-License-Identifier: Apache-2.0
#include "device/nearby.h"

#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "device/stream.h"

using namespace shoal::device;
using Numbers = std::vector<int>;

namespace {

int processors_allowed() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : -1;
}

}  // namespace

TEST_CASE("nearby: of the processors that may be used those of the node; nothing where that says nothing") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("shoal-nodes-" + std::to_string(::getpid()));
  for (const char* entry : {"node0/cpu0", "node0/cpu1", "node1/cpu2", "node1/cpu3"}) {
    std::filesystem::create_directories((folder / entry).parent_path());
    std::ofstream(folder / entry) << "";
  }
  CHECK(on_node(folder, 0, {0, 1, 2, 3}) == Numbers{0, 1});
  CHECK(on_node(folder, 1, {1, 3}) == Numbers{3});
  CHECK(on_node(folder, 1, {2, 3}).empty());     // all are near
  CHECK(on_node(folder, 1, {0, 1}).empty());     // none is: the node is not the one that the thread runs on any more
  CHECK(on_node(folder, 7, {0, 1}).empty());     // no such node
  CHECK(on_node("/nosuch", 0, {0, 1}).empty());  // no /sys
  std::filesystem::remove_all(folder);
}

TEST_CASE("nearby: a thread keeps to what it is told; to nothing where that is empty or impossible") {
  std::thread([] {
    const int before = processors_allowed();
    keep_to({});
    CHECK(processors_allowed() == before);
    keep_to({1023});
    CHECK(processors_allowed() == before);
    keep_to({sched_getcpu()});
    CHECK(processors_allowed() == 1);
  }).join();
}

TEST_CASE("nearby: a stream's thread may use no more than its maker") {
  const int maker = processors_allowed();
  int there = 0;
  Stream stream;
  stream.enqueue([&] { there = processors_allowed(); });
  stream.synchronize();
  CHECK(there >= 1);
  CHECK(there <= maker);
}
