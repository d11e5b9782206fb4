// SPDX-License-Identifier: Apache-2.0
// The ways in which programs come to this library instead of the one they know.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tools/spawn.h"

namespace {

using shoal::testing::Finished;
using shoal::testing::spawn;
using Environment = std::vector<std::pair<std::string, std::string>>;

Finished run(const std::vector<std::string>& command, const Environment& environment = {}) {
  return spawn(command, {.environment = environment, .input = "", .watch = {}});
}

}  // namespace

TEST_CASE("loading: a program compiled with our header, or with NCCL's own, runs with libnccl.so.2") {
  const Finished ours = run({ABI_CLIENT});
  CHECK(ours.out == "version 22809, all good\n");
  CHECK(ours.code == 0);
  if (std::string(ABI_CLIENT_OF_NCCL).empty()) {
    WARN("SKIP: no CUDA toolkit with nccl.h 2.28.9 here");
    return;
  }
  const Finished theirs = run({ABI_CLIENT_OF_NCCL});
  CHECK(theirs.out == "version 22809, all good\n");
  CHECK(theirs.code == 0);
}

TEST_CASE("loading: a program for GPU kernels is told that there is nothing for it") {
  if (std::string(ABI_DEVICE_CLIENT).empty()) {
    WARN("SKIP: no CUDA toolkit with nccl_device.h 2.28.9 here");
    return;
  }
  const Finished device = run({ABI_DEVICE_CLIENT});
  CHECK(device.out == "all good\n");
  CHECK(device.code == 0);
}

TEST_CASE("loading: functions asked for weakly are there, those of newer versions are not") {
  const Finished weak = run({ABI_WEAK_CLIENT});
  CHECK(weak.out == "there: 1, newer: 0\n");
  CHECK(weak.code == 0);
}

#ifndef ABI_SANITIZED  // a sanitizer's runtime must be the first library of a process

TEST_CASE("loading: a preloaded tool takes the place of a function and calls its twin") {
  const Finished profiled = run({ABI_CLIENT}, {{"LD_PRELOAD", ABI_PROFILER}});
  CHECK(profiled.code == 0);
  CHECK(profiled.out == "version 22809, all good\nprofiler: 6 calls, 6000 elements\n");  // 3 of them are simulated
}

TEST_CASE("loading: a fixed RPATH (but not RUNPATH) wins over LD_LIBRARY_PATH, and loses to LD_PRELOAD and LD_AUDIT") {
  const std::string folder = std::filesystem::path(ABI_LIBNCCL).parent_path();
  CHECK(run({ABI_VERSION}).out == "99999\n");
  CHECK(run({ABI_VERSION}, {{"LD_LIBRARY_PATH", folder}}).out == "99999\n");
  CHECK(run({ABI_VERSION_RUNPATH}).out == "99999\n");
  CHECK(run({ABI_VERSION_RUNPATH}, {{"LD_LIBRARY_PATH", folder}}).out == "22809\n");
  CHECK(run({ABI_VERSION}, {{"LD_PRELOAD", ABI_LIBNCCL}}).out == "22809\n");
  CHECK(run({ABI_VERSION}, {{"LD_AUDIT", ABI_AUDIT}}).out == "22809\n");
  CHECK(run({ABI_VERSION}, {{"LD_AUDIT", ABI_AUDIT}, {"SHOAL_NCCL_PATH", ABI_FAKE}}).out == "99999\n");
}

TEST_CASE("loading: the audit library says what it cannot read and leaves the program its own") {
  const Finished missing = run({ABI_VERSION}, {{"LD_AUDIT", ABI_AUDIT}, {"SHOAL_NCCL_PATH", "/no/libnccl.so.2"}});
  CHECK(missing.out == "99999\n");
  CHECK(missing.err == "libshoal-audit: /no/libnccl.so.2: No such file or directory; NCCL is loaded as without it\n");
}

TEST_CASE("loading: the audit library answers for NCCL's names alone, also with a path or a longer version") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("shoal-abi-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  struct Removed {
    std::filesystem::path path;
    ~Removed() { std::filesystem::remove_all(path); }
  } const removed{folder};
  for (const auto& [name, answers] : {std::pair{"libnccl.so", true},
                                      {"libnccl.so.2", true},
                                      {"libnccl.so.2.16.2", true},
                                      {"libnccl.so.20", false},
                                      {"libnccl.so.3", false},
                                      {"libnccl-net.so", false}}) {
    INFO(name);
    // The program itself under such a name: what is loaded has its function, unless NCCL is loaded instead.
    const std::string copy = folder / name;
    std::filesystem::copy_file(ABI_USER, copy);
    const Finished loaded = run({ABI_DLOPEN_FIRST, copy}, {{"LD_AUDIT", ABI_AUDIT}});
    CHECK(loaded.code == (answers ? 2 : 0));
  }
}

TEST_CASE("loading: who loads NCCL first loads it for all") {
  CHECK(run({ABI_DLOPEN_FIRST, ABI_USER}).out == "99999\n");
  CHECK(run({ABI_DLOPEN_FIRST, ABI_LIBNCCL, ABI_USER}).out == "22809\n");
}

TEST_CASE("loading: a Python program resolves every name and passes the unique id by value") {
  if (std::string(ABI_PYTHON).empty()) {
    WARN("SKIP: no Python 3 here");
    return;
  }
  const Finished python = run({ABI_PYTHON, ABI_CTYPES_CLIENT, ABI_LIBNCCL, ABI_TABLE});
  CHECK(python.out == "all good\n");
  CHECK(python.err == "");
  CHECK(python.code == 0);
}

#endif
