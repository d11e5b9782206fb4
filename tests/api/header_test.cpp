// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <nccl.h>

#include <catch2/catch.hpp>

#include "support/ranks.h"

extern "C" int use_the_api(void);

TEST_CASE("header: a C program uses the API") {
  CHECK(testing::in_child({}, 60, [] { return use_the_api() == 0 ? std::string() : std::string(ncclGetLastError(nullptr)); }) ==
        "");
}

TEST_CASE("header: every function has its strong twin at the same address") {
  for (const char* name : {"ncclGetVersion", "ncclGetErrorString", "ncclGetLastError", "ncclGetUniqueId", "ncclCommInitRank",
                           "ncclCommInitRankConfig", "ncclCommInitAll", "ncclCommFinalize", "ncclCommDestroy", "ncclCommAbort",
                           "ncclCommGetAsyncError", "ncclCommCount", "ncclCommCuDevice", "ncclCommUserRank",
                           "ncclRedOpCreatePreMulSum", "ncclRedOpDestroy", "ncclAllReduce", "ncclGroupStart", "ncclGroupEnd"}) {
    INFO(name);
    void* const weak = dlsym(RTLD_DEFAULT, name);
    CHECK(weak != nullptr);
    CHECK(weak == dlsym(RTLD_DEFAULT, (std::string("p") + name).c_str()));
  }
}
