// SPDX-License-Identifier: Apache-2.0
#include "comm/algorithm_filter.h"

#include <catch2/catch.hpp>

using namespace shoal;
using comm::AlgorithmFilter;
using plan::Collective;

namespace {

AlgorithmFilter good(std::string_view text) {
  Result<AlgorithmFilter> parsed = AlgorithmFilter::parse("NCCL_ALGO", text);
  INFO(text << ": " << parsed.status().text());
  REQUIRE(parsed.is_ok());
  return parsed.take();
}

bool allows(const AlgorithmFilter& filter, Collective collective, std::string_view name) {
  const algorithms::Algorithm* found = algorithms::find(collective, name);
  REQUIRE(found != nullptr);
  return filter.allows(*found);
}

std::string only(const AlgorithmFilter& filter, Collective collective) {
  const algorithms::Algorithm* found = filter.only(collective);
  return found == nullptr ? "" : std::string(found->name);
}

}  // namespace

TEST_CASE("algorithm filter: nothing said leaves everything free") {
  const AlgorithmFilter filter = good("");
  for (const algorithms::Algorithm& each : algorithms::all()) CHECK(filter.allows(each));
  CHECK(filter.only(Collective::all_reduce) == nullptr);
}

TEST_CASE("algorithm filter: one name forces it wherever there is one of that name, in any case") {
  for (const char* text : {"ring", "Ring", "RING"}) {
    const AlgorithmFilter filter = good(text);
    CHECK(only(filter, Collective::all_reduce) == "ring");
    CHECK(only(filter, Collective::all_gather) == "ring");
    CHECK(allows(filter, Collective::gather, "binomial"));  // where there is no ring the choice is free
  }
  CHECK(only(good("Recursive_Doubling"), Collective::all_reduce) == "recursive_doubling");
  CHECK(only(good("tree"), Collective::all_reduce) == "tree");
}

TEST_CASE("algorithm filter: functions have lists of their own, and the last word counts") {
  const AlgorithmFilter filter = good("Tree;AllReduce:Ring;all_gather:bruck,pat");
  CHECK(only(filter, Collective::all_reduce) == "ring");
  CHECK_FALSE(allows(filter, Collective::all_gather, "ring"));
  CHECK(allows(filter, Collective::all_gather, "bruck"));
  CHECK(allows(filter, Collective::all_gather, "pat"));
  CHECK(allows(filter, Collective::broadcast, "double_tree"));
  CHECK(allows(filter, Collective::broadcast, "binomial"));
  CHECK_FALSE(allows(filter, Collective::broadcast, "chain"));
}

TEST_CASE("algorithm filter: a caret allows all but those listed") {
  const AlgorithmFilter filter = good("^ring,tree");
  CHECK_FALSE(allows(filter, Collective::all_reduce, "ring"));
  CHECK_FALSE(allows(filter, Collective::all_reduce, "two_rings"));
  CHECK_FALSE(allows(filter, Collective::all_reduce, "double_tree"));
  CHECK(allows(filter, Collective::all_reduce, "recursive_doubling"));
}

TEST_CASE("algorithm filter: names of NCCL's without a counterpart leave the choice free") {
  for (const char* text : {"NVLS", "NVLS,NVLSTree,CollNetDirect,CollNetChain", "AllReduce:NVLS"})
    CHECK(allows(good(text), Collective::all_reduce, "ring"));
  CHECK(only(good("NVLS,Ring;AllGather:PAT"), Collective::all_gather) == "pat");
}

TEST_CASE("algorithm filter: what the grammar does not know is refused by name") {
  const auto refused = [](const char* text, const char* part) {
    const Result<AlgorithmFilter> parsed = AlgorithmFilter::parse("NCCL_ALGO", text);
    INFO(text);
    REQUIRE_FALSE(parsed.is_ok());
    CHECK(parsed.status().code() == Code::invalid_argument);
    CHECK_THAT(std::string(parsed.status().text()), Catch::StartsWith("NCCL_ALGO='" + std::string(text) + "'"));
    CHECK_THAT(std::string(parsed.status().text()), Catch::Contains(part));
  };
  refused("Rang", "'Rang'");
  refused("ring,", "''");
  refused("Ring;Tree", "'Tree'");
  refused("AllReduze:Ring", "'AllReduze'");
  refused("^", "''");
  refused(";", "''");
  refused("AllReduce:Ring:Tree", "'Ring:Tree'");
}
