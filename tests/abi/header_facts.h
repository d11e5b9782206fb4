// SPDX-License-Identifier: Apache-2.0
// What a compiler makes of a nccl.h: sizes, offsets, values and the types of all functions. header_facts.cpp is compiled once for
// ours and, where a CUDA toolkit has one, once for NCCL's.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace testing {

using Facts = std::vector<std::pair<std::string, std::string>>;

Facts facts_of_our_header();
Facts facts_of_nccl_header();  // empty where there is none

}  // namespace testing
