// SPDX-License-Identifier: Apache-2.0
#include <nccl.h>

#include <catch2/catch.hpp>

#include "support/ranks.h"

extern "C" int use_the_api(void);

TEST_CASE("header: a C program uses the API") {
  CHECK(testing::in_child({}, 60, [] { return use_the_api() == 0 ? std::string() : std::string(ncclGetLastError(nullptr)); }) ==
        "");
}
