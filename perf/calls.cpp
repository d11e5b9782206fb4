// SPDX-License-Identifier: Apache-2.0
#include "perf/calls.h"

#include <fmt/format.h>

#include <array>

namespace shoal::perf {
namespace {

// Of a vector of so many elements seen as a matrix: as square as powers of two make it.
std::size_t rows_of(std::size_t count) {
  std::size_t rows = 1;
  while (count % (2 * rows) == 0 && 4 * rows * rows <= count) rows *= 2;
  return rows;
}

}  // namespace

Calls::~Calls() {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (calls_[i].compressor != nullptr) shoalCompressorDestroy(calls_[i].compressor);
    if (sums_[i]) ncclRedOpDestroy(*sums_[i], calls_[i].comm);
  }
}

MaybeFailure Calls::make_sum(const Problem& problem, const Member& member, ncclRedOp_t& op) {
  const ElementType& type = *problem.type;
  const int factor = mulsum_factor(member.rank);
  std::array<std::byte, 8> scalar = {};
  store(type, type.kind == Kind::floating ? encode(type, factor) : static_cast<Bits>(factor), scalar.data());
  const ncclResult_t made = ncclRedOpCreatePreMulSum(&op, scalar.data(), type.type, ncclScalarHostImmediate, member.comm);
  if (made != ncclSuccess) return make_failure(made, "ncclRedOpCreatePreMulSum", fmt::format("{}", member.rank));
  sums_.back() = op;
  return std::nullopt;
}

MaybeFailure Calls::make(const Options& options, Team& team, const Problem& problem) {
  for (Member& member : team.members()) {
    const Regions regions = regions_of(member, problem, options.unalign);
    calls_.push_back({.send = regions.send.data(),
                      .receive = regions.receive.data(),
                      .count = problem.extent(member.rank).count,
                      .type = problem.type->type,
                      .element_bytes = problem.type->bytes,
                      .op = problem.reduction->op,
                      .place = problem.place(member.rank),
                      .blocks = problem.blocks(member.rank),
                      .comm = member.comm,
                      .stream = member.stream});
    sums_.emplace_back();
    Call& call = calls_.back();
    if (problem.reduction->reduction == Reduction::mulsum && problem.collective->reduces) {
      if (auto failure = make_sum(problem, member, call.op)) return failure;
    }
    if (options.compressor.empty()) continue;
    call.rows = rows_of(call.count);
    const ncclResult_t made =
        shoalCompressorCreate(&call.compressor, options.compressor.c_str(), options.compressor_options.c_str());
    if (made != ncclSuccess) return make_failure(made, "shoalCompressorCreate", fmt::format("{}", member.rank));
  }
  return std::nullopt;
}

std::span<const shoalCompressionReport> Calls::report() {
  reports_.assign(calls_.size(), {});
  for (std::size_t i = 0; i < calls_.size(); ++i) calls_[i].report = &reports_[i];
  return reports_;
}

}  // namespace shoal::perf
