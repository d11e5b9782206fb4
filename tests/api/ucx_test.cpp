// SPDX-License-Identifier: Apache-2.0
// Communicators over UCX, as a program sees them: which way data goes, what becomes of it where UCX or a peer fails, and what UCX
// leaves as it was in the process. Where UCX is not installed its ranks talk over TCP, and say so.
#include <dlfcn.h>
#include <nccl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "support/ranks.h"

namespace {

using testing::Ranks;
using testing::Variables;

constexpr std::size_t kCount = 100'003;

// Looked at in a child: the ranks of a test are forked, and shall load it themselves.
bool is_installed() {
  const std::string missing = testing::in_child(
      {}, 20, []() -> std::string { return dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL) == nullptr ? dlerror() : ""; });
  if (!missing.empty()) WARN("UCX is not installed: " + missing);
  return missing.empty();
}

Variables over_ucx(const Variables& more = {}) {
  Variables all = testing::transport_variables("ucx");
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string sum(const Ranks& ranks, ncclComm_t comm) {
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 97 + static_cast<std::size_t>(ranks.rank));
  std::string wrong =
      testing::must(ncclAllReduce(values.data(), values.data(), kCount, ncclFloat, ncclSum, comm, nullptr), "sum");
  const auto n = static_cast<std::size_t>(ranks.world);
  for (std::size_t i = 0; i < kCount && wrong.empty(); ++i)
    if (values[i] != static_cast<float>(n * (i % 97) + n * (n - 1) / 2)) wrong = "element " + std::to_string(i);
  return wrong;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What all ranks log while they make a sum.
std::string log_of_sum(const Variables& more) {
  const std::string path = "/tmp/shoal-ucx-test-" + std::to_string(getpid());
  Variables variables = over_ucx(more);
  variables.insert(variables.end(), {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "NET,INIT"}, {"NCCL_DEBUG_FILE", path}});
  const std::string wrong = testing::as_processes(3, variables, 60, [](const Ranks& ranks) {
    return testing::with_comm(ranks, [&](ncclComm_t comm) { return sum(ranks, comm); });
  });
  CHECK(wrong == "");
  std::string log = read_file(path);
  unlink(path.c_str());
  return log;
}

}  // namespace

TEST_CASE("ucx: links go over UCX where it is asked for, by whatever it may use, and only there") {
  if (!is_installed()) return;
  for (const char* tls : {"all", "tcp", "shm", "posix", "sysv"}) {
    INFO("UCX_TLS=" << tls);
    const std::string log = log_of_sum({{"UCX_TLS", tls}});
    CHECK(log.find("by ucx") != std::string::npos);
    CHECK(log.find("by tcp") == std::string::npos);
    CHECK(log.find("ucx: UCX 1.") != std::string::npos);
  }
  CHECK(log_of_sum({{"NCCL_NET", "Socket"}}).find("by ucx") == std::string::npos);
}

TEST_CASE("ucx: where UCX can do nothing the ranks talk over TCP, and say why") {
  if (!is_installed()) return;
  // Nothing can be done with it between two processes.
  const std::string log = log_of_sum({{"UCX_TLS", "self"}});
  CHECK(log.find("by tcp") != std::string::npos);
  CHECK(log.find("going on with tcp") != std::string::npos);
  CHECK(log.find("UCX_TLS") != std::string::npos);
}

TEST_CASE("ucx: what is done at signals is afterwards what it was before") {
  if (!is_installed()) return;
  const auto check = [](const Ranks& ranks) -> std::string {
    std::array<struct sigaction, 32> before{};
    for (int signal = 1; signal < 32; ++signal) (void)sigaction(signal, nullptr, &before[static_cast<std::size_t>(signal)]);
    std::string wrong = testing::with_comm(ranks, [&](ncclComm_t comm) { return sum(ranks, comm); });
    for (int signal = 1; signal < 32; ++signal) {
      struct sigaction now {};
      (void)sigaction(signal, nullptr, &now);
      if (now.sa_handler != before[static_cast<std::size_t>(signal)].sa_handler) wrong += " signal " + std::to_string(signal);
    }
    return wrong;
  };
  CHECK(testing::as_processes(2, over_ucx(), 60, check) == "");
}

TEST_CASE("ucx: the library is loaded only where it is asked for") {
  if (!is_installed()) return;
  const auto is_loaded = [](const Ranks& ranks) {
    return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
      if (std::string wrong = sum(ranks, comm); !wrong.empty()) return wrong;
      return dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD) == nullptr ? "" : "loaded";
    });
  };
  CHECK(testing::as_processes(2, testing::transport_variables("tcp"), 60, is_loaded) == "");
  CHECK(testing::as_processes(2, over_ucx(), 60, is_loaded) == "rank 0: loaded\nrank 1: loaded\n");
}

TEST_CASE("ucx: a killed rank is named by the others, whatever UCX goes over") {
  if (!is_installed()) return;
  for (const char* tls : {"tcp", "shm"}) {
    INFO("UCX_TLS=" << tls);
    const auto body = [](const Ranks& ranks) -> std::string {
      ncclComm_t comm = nullptr;
      if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
      if (std::string wrong = sum(ranks, comm); !wrong.empty()) return wrong;
      if (ranks.rank == 2) kill(getpid(), SIGKILL);
      std::vector<float> values(kCount, 1);
      ncclResult_t result = ncclSuccess;
      for (int i = 0; i < 1000 && result == ncclSuccess; ++i)
        result = ncclAllReduce(values.data(), values.data(), kCount, ncclFloat, ncclMax, comm, nullptr);
      const std::string said = ncclGetLastError(comm);
      ncclCommAbort(comm);
      if (result != ncclRemoteError) return "result " + std::to_string(result) + ": " + said;
      return said.find("rank 2") == std::string::npos ? "the culprit is not named: " + said : "";
    };
    CHECK(testing::as_processes(4, over_ucx({{"UCX_TLS", tls}}), 60, body, {2}) == "");
  }
}

TEST_CASE("ucx: a communicator after another leaves no descriptor behind") {
  if (!is_installed()) return;
  const auto rounds = [](const Ranks& ranks) -> std::string {
    ncclComm_t parent = nullptr;
    if (std::string wrong = testing::init(ranks, parent); !wrong.empty()) return wrong;
    std::string wrong = sum(ranks, parent);
    int descriptors = 0;
    for (int round = 0; round < 30 && wrong.empty(); ++round) {
      if (round == 3) descriptors = testing::open_descriptors();
      ncclComm_t child = nullptr;
      wrong = testing::must(ncclCommSplit(parent, 0, ranks.rank, &child, nullptr), "ncclCommSplit");
      if (wrong.empty()) wrong = sum(ranks, child);
      if (wrong.empty()) wrong = testing::must(ncclCommDestroy(child), "ncclCommDestroy");
    }
    // UCX closes an endpoint's sockets a while after the endpoint: up to seven of them are on their way out at any moment.
    for (int wait = 0; wait < 1000 && testing::open_descriptors() > descriptors; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (wrong.empty() && testing::open_descriptors() > descriptors)
      wrong = std::to_string(testing::open_descriptors()) + " descriptors, " + std::to_string(descriptors) + " before";
    const std::string ended = testing::must(ncclCommDestroy(parent), "ncclCommDestroy");
    return wrong + ended;
  };
  CHECK(testing::as_processes(3, over_ucx(), 100, rounds) == "");
}
