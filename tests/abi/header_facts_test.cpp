// SPDX-License-Identifier: Apache-2.0
#include "abi/header_facts.h"

#include <catch2/catch.hpp>

#ifndef ABI_REAL_HEADER
testing::Facts testing::facts_of_nccl_header() { return {}; }
#endif

TEST_CASE("header: sizes, offsets, values and function types are those of NCCL's own header") {
  const testing::Facts ours = testing::facts_of_our_header(), theirs = testing::facts_of_nccl_header();
  CHECK(ours.size() > 190);
  if (theirs.empty()) {
    WARN("SKIP: no CUDA toolkit with nccl.h 2.28.9 here");
    return;
  }
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) CHECK(ours[i] == theirs[i]);
}
