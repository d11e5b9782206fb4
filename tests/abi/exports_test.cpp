// SPDX-License-Identifier: Apache-2.0
// What the libraries export, as nm and the dynamic linker see it: the table, and nothing else.
#include <dlfcn.h>
#include <nccl.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "abi/exports.h"
#include "tools/spawn.h"

namespace {

using shoal::testing::Finished;
using shoal::testing::lines_of;
using shoal::testing::spawn;

// Name and kind ("T" strong, "W" weak) of what a library defines.
std::map<std::string, std::string> defined_by(const std::string& library) {
  const Finished nm = spawn({ABI_NM, "-D", "--defined-only", library});
  REQUIRE(nm.code == 0);
  std::map<std::string, std::string> symbols;
  for (const std::string& line : lines_of(nm.out)) {
    std::istringstream words(line);
    std::string address, kind, name;
    words >> address >> kind >> name;
    symbols[name] = kind;
  }
  return symbols;
}

std::map<std::string, std::string> of_the_table() {
  std::map<std::string, std::string> symbols;
  for (const testing::Export& each : testing::exports()) {
    symbols[each.name] = each.paired() ? "W" : "T";
    if (each.paired()) symbols["p" + each.name] = "T";
  }
  return symbols;
}

}  // namespace

TEST_CASE("exports: the table has NCCL 2.28.9's 52 pairs, each name once") {
  const auto& table = testing::exports();
  CHECK(std::count_if(table.begin(), table.end(), [](const auto& each) { return each.paired(); }) == 52);
  CHECK(of_the_table().size() == table.size() + 52);
}

TEST_CASE("exports: both libraries export the table and nothing else, without versions") {
  for (const char* library : {ABI_LIBNCCL, ABI_LIBSHOAL}) {
    INFO(library);
    CHECK(defined_by(library) == of_the_table());  // a version would be part of the name: ncclX@@V
  }
}

TEST_CASE("exports: NCCL's own library exports the same names, weak and strong alike") {
  const std::string real = ABI_REAL_LIBRARY;
  if (real.empty()) {
    WARN("SKIP: no CUDA toolkit with libnccl here");
    return;
  }
  const std::map<std::string, std::string> theirs = defined_by(real);
  std::map<std::string, std::string> ours = of_the_table();
  std::erase_if(ours, [](const auto& symbol) { return symbol.first.rfind("shoal", 0) == 0; });
  CHECK(theirs == ours);
}

TEST_CASE("exports: libnccl.so.2 is a file and a SONAME, libnccl.so leads to it, and it calls its own functions only") {
  const Finished dynamic = spawn({ABI_READELF, "-d", ABI_LIBNCCL});
  CHECK(dynamic.out.find("[libnccl.so.2]") != std::string::npos);
  const std::string folder = std::string(ABI_LIBNCCL).substr(0, std::string(ABI_LIBNCCL).rfind('/'));
  CHECK(spawn({"readlink", folder + "/libnccl.so"}).out == "libnccl.so.2\n");
  CHECK(spawn({"readlink", folder + "/libnccl.so.2"}).out == "");
  const Finished relocations = spawn({ABI_READELF, "-rW", ABI_LIBNCCL});
  REQUIRE(relocations.code == 0);
  std::string calls;
  for (const std::string& line : lines_of(relocations.out))
    if (line.find("nccl") != std::string::npos || line.find("shoal") != std::string::npos) calls += line + "\n";
  CHECK(calls == "");
}

TEST_CASE("exports: every name is found at run time, a pair at one address") {
  for (const char* path : {ABI_LIBNCCL, ABI_LIBSHOAL}) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    for (const testing::Export& each : testing::exports()) {
      INFO(path << ": " << each.name);
      void* const plain = dlsym(library, each.name.c_str());
      CHECK(plain != nullptr);
      if (each.paired()) CHECK(plain == dlsym(library, ("p" + each.name).c_str()));
    }
  }
}

namespace {

struct Team {
  int ranks, rank, stride;
};

template <typename F>
F* function(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

std::string last_error() { return ncclGetLastError(nullptr); }

}  // namespace

TEST_CASE("exports: functions of the device API say that there is none, whatever they are given") {
  const auto why = [](const std::string& name) {
    return last_error() ==
           name +
               ": there is no communication from inside GPU kernels: communicators are of host memory; use the calls of nccl.h";
  };
  const Team team{8, 1, 1};
  CHECK(function<ncclResult_t(ncclComm_t, const void*, void*)>("ncclDevCommCreate")(nullptr, nullptr, nullptr) ==
        ncclInvalidUsage);
  CHECK(why("ncclDevCommCreate"));
  CHECK(function<ncclResult_t(ncclComm_t, const void*)>("ncclDevCommDestroy")(nullptr, nullptr) == ncclInvalidUsage);
  CHECK(why("ncclDevCommDestroy"));
  for (const char* name : {"ncclTeamWorld", "ncclTeamLsa", "ncclTeamRail"}) {
    INFO(name);
    const Team answer = function<Team(ncclComm_t)>(name)(nullptr);
    CHECK((answer.ranks == 0 && answer.rank == 0 && answer.stride == 0));
    CHECK(why(name));
  }
  for (const char* name : {"ncclTeamRankToWorld", "ncclTeamRankToLsa"}) {
    INFO(name);
    CHECK(function<int(ncclComm_t, Team, int)>(name)(nullptr, team, 3) == 0);
    CHECK(why(name));
  }
  CHECK(function<ncclResult_t(Team, int, void*, void*)>("ncclLsaBarrierCreateRequirement")(team, 1, nullptr, nullptr) ==
        ncclInvalidUsage);
  CHECK(why("ncclLsaBarrierCreateRequirement"));
  CHECK(function<ncclResult_t(ncclComm_t, Team, int, void*, void*)>("ncclGinBarrierCreateRequirement")(
            nullptr, team, 1, nullptr, nullptr) == ncclInvalidUsage);
  CHECK(why("ncclGinBarrierCreateRequirement"));
  CHECK(function<ncclResult_t(int, int, void*, void*)>("ncclLLA2ACreateRequirement")(1, 1, nullptr, nullptr) == ncclInvalidUsage);
  CHECK(why("ncclLLA2ACreateRequirement"));
  CHECK(function<int(int, int)>("ncclLLA2ACalcSlots")(8, 4) == 0);
  CHECK(why("ncclLLA2ACalcSlots"));
}

TEST_CASE("exports: the page on taking NCCL's place says of every function what it does") {
  std::ifstream file(ABI_PAGE);
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t start = page.find("## Which functions do what"), end = page.find("## What is different");
  REQUIRE((start != std::string::npos && end != std::string::npos));
  std::set<std::string> words;
  std::string word;
  for (const char c : page.substr(start, end - start)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    words.insert(word.rfind("nccl", 0) == 0 ? word.substr(4) : word);
    word.clear();
  }
  for (const testing::Export& each : testing::exports())
    if (each.header != testing::Header::shoal_h) {
      INFO(each.name);
      CHECK(words.count(each.name.substr(4)) == 1);
    }
}

TEST_CASE("exports: resetting the log's settings is allowed and changes nothing") {
  function<void()>("ncclResetDebugInit")();
  function<void()>("pncclResetDebugInit")();
  function<void()>("ncclResetDebugInitInternal")();
}
