// SPDX-License-Identifier: Apache-2.0
// All-reduce of every type by every reduction over every world from 1 to 9, compared exactly, over each transport.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "support/pattern.h"
#include "support/ranks.h"

namespace {

using shoal::DataType;
using shoal::ReduceOp;

constexpr std::size_t kCanary = 64;

struct Case {
  DataType type;
  ReduceOp op;
  std::size_t count;
  std::size_t shift = 0;  // bytes off alignment
  bool in_place = false;
};

std::string text_of(const Case& c) {
  return std::string(name_of(c.type)) + " " + std::string(name_of(c.op)) + " x " + std::to_string(c.count) +
         (c.in_place ? " in place" : "") + (c.shift != 0 ? " shifted by " + std::to_string(c.shift) : "");
}

class Reduction {
 public:
  Reduction(const Case& c, const testing::Ranks& ranks, ncclComm_t comm) : comm_(comm) {
    if (c.op != ReduceOp::premul_sum) {
      op_ = static_cast<ncclRedOp_t>(c.op);
      return;
    }
    auto factor = testing::factor_of(c.type, ranks.rank);
    wrong_ = testing::must(
        ncclRedOpCreatePreMulSum(&op_, factor.data(), static_cast<ncclDataType_t>(c.type), ncclScalarHostImmediate, comm),
        "ncclRedOpCreatePreMulSum");
    made_ = wrong_.empty();
  }
  ~Reduction() {
    if (made_) ncclRedOpDestroy(op_, comm_);
  }
  ncclRedOp_t op() const { return op_; }
  const std::string& wrong() const { return wrong_; }

 private:
  ncclComm_t comm_;
  ncclRedOp_t op_ = ncclSum;
  bool made_ = false;
  std::string wrong_;
};

std::string run_case(const Case& c, const testing::Ranks& ranks, ncclComm_t comm) {
  const auto original = testing::input_of(c.type, c.op, ranks.rank, c.count);
  const std::size_t bytes = original.size();
  std::vector<std::byte> in(bytes + 2 * kCanary + c.shift, std::byte{0xA5}), out(in);
  std::byte* input = in.data() + kCanary + c.shift;
  std::byte* output = c.in_place ? input : out.data() + kCanary + c.shift;
  std::copy(original.begin(), original.end(), input);

  const Reduction reduction(c, ranks, comm);
  if (!reduction.wrong().empty()) return reduction.wrong();
  const auto result = ncclAllReduce(input, output, c.count, static_cast<ncclDataType_t>(c.type), reduction.op(), comm, nullptr);
  if (std::string wrong = testing::must(result, "ncclAllReduce"); !wrong.empty()) return text_of(c) + ": " + wrong;
  if (std::string wrong = testing::compare(c.type, c.op, ranks.world, output, c.count); !wrong.empty())
    return text_of(c) + ": " + wrong;
  if (!c.in_place && !std::equal(original.begin(), original.end(), input)) return text_of(c) + ": the input was changed";
  for (const auto* block : {&in, &out})
    for (std::size_t i = 0; i < kCanary; ++i)
      if ((*block)[i] != std::byte{0xA5} || (*block)[block->size() - 1 - i] != std::byte{0xA5})
        return text_of(c) + ": wrote beyond the buffer";
  return "";
}

std::vector<Case> cases(int world) {
  const auto w = static_cast<std::size_t>(world);
  std::vector<std::size_t> counts{0, 1, w - 1, w + 1, 1000, 1048577};
  // Sanitizers make the largest count slow; it adds nothing that a smaller multi-slice one does not show them.
  if (std::getenv("SHOAL_TEST_SMALL") != nullptr) counts.back() = 70001;
  std::vector<Case> all;
  for (int t = 0; t < shoal::kDataTypes; ++t)
    for (int o = 0; o < shoal::kReduceOps; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      for (std::size_t count : counts) all.push_back({type, op, count});
      all.push_back({type, op, 1001, 0, true});
      all.push_back({type, op, 1001, 1 + (all.size() % 15), false});
    }
  return all;
}

std::string all_cases(const testing::Ranks& ranks) {
  ncclComm_t comm = nullptr;
  if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
  for (const Case& c : cases(ranks.world))
    if (std::string wrong = run_case(c, ranks, comm); !wrong.empty()) {
      ncclCommAbort(comm);
      return wrong;
    }
  return testing::must(ncclCommDestroy(comm), "ncclCommDestroy");
}

void matrix(const std::string& transport) {
  const int largest = transport == "ucx" ? 5 : 9;
  for (int world = 1; world <= largest; ++world) {
    INFO(transport << ", world " << world);
    CHECK(testing::run_ranks(transport, world, 300, all_cases) == "");
  }
}

}  // namespace

TEST_CASE("all-reduce is exact for every type, reduction and world over threads", "[threads]") { matrix("threads"); }
TEST_CASE("all-reduce is exact for every type, reduction and world over shm", "[shm]") { matrix("shm"); }
TEST_CASE("all-reduce is exact for every type, reduction and world over tcp", "[tcp]") { matrix("tcp"); }
TEST_CASE("all-reduce is exact for every type, reduction and world over UCX", "[ucx]") { matrix("ucx"); }
TEST_CASE("all-reduce is exact for every type, reduction and world by ranks that read each other's memory", "[pulled]") {
  testing::Variables variables = testing::transport_variables("shm");
  variables.emplace_back("SHOAL_PULL_BYTES", "1");
  for (int world = 2; world <= 5; ++world) {
    CAPTURE(world);
    CHECK(testing::as_processes(world, variables, 300, all_cases) == "");
  }
}
