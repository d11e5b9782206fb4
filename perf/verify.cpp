// SPDX-License-Identifier: Apache-2.0
#include "perf/verify.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>

namespace shoal::perf {

void write_gradient(int rank, std::span<std::byte> memory) {
  std::minstd_rand random(static_cast<unsigned>(rank) + 1);
  const std::span values(reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float));
  for (float& value : values) {
    constexpr float kSpan = static_cast<float>(std::minstd_rand::max());
    float sum = -2;
    for (int i = 0; i < 4; ++i) sum += static_cast<float>(random()) / kSpan;
    value = 1e-3F * sum * sum * sum;
  }
}

void Verifier::spoil_and_prepare(const Problem& problem, Pattern& pattern, Member& member) const {
  const Regions regions = regions_of(member, problem, options_.unalign);
  // What no result looks like by chance in every element: left-overs of the call before would be right.
  std::fill(regions.used.begin(), regions.used.end(), std::byte{0x5a});
  problem.collective->prepare(pattern, problem.place(member.rank), regions.send);
  Buffer::mark(regions.used);
  if (!problem.in_place) Buffer::mark(regions.send);
}

MaybeFailure Verifier::check(const Problem& problem, const Calls& calls, std::int64_t& wrong) {
  std::vector<std::vector<std::int64_t>> counts(team_.members().size(), {0});
  for (int iteration = 1; iteration <= options_.checks; ++iteration) {
    Pattern pattern = problem.pattern(static_cast<std::uint64_t>(iteration));
    for (Member& member : team_.members()) spoil_and_prepare(problem, pattern, member);
    if (auto failure = team_.launch(*problem.collective, calls.all(), 1)) return failure;
    if (auto failure = team_.synchronize()) return failure;
    std::size_t i = 0;
    for (Member& member : team_.members()) counts[i++][0] += count_wrong(problem, member, pattern);
  }
  if (auto failure = team_.combine(counts, ncclSum)) return failure;
  wrong = counts.front()[0];
  return std::nullopt;
}

std::int64_t Verifier::count_wrong(const Problem& problem, Member& member, Pattern& pattern) const {
  const Regions regions = regions_of(member, problem, options_.unalign);
  const std::span<std::byte> receive = regions.receive;
  if (flip_rank_ == member.rank && !receive.empty()) receive[problem.type->bytes - 1] ^= std::byte{0xff};
  std::int64_t wrong = problem.collective->check(pattern, problem.place(member.rank), problem.blocks(member.rank), receive);
  if (!Buffer::untouched(regions.used) || (!problem.in_place && !Buffer::untouched(regions.send))) {
    std::fprintf(stderr, "shoal-perf: rank %d: bytes beside a buffer of %zu bytes were overwritten\n", member.rank,
                 receive.size());
    ++wrong;
  }
  return wrong;
}

MaybeFailure Verifier::check_compressed(const Problem& problem, Calls& calls, Measurement& result) {
  const std::span<const shoalCompressionReport> reports = calls.report();
  for (Member& member : team_.members()) write_gradient(member.rank, regions_of(member, problem, options_.unalign).send);
  if (auto failure = team_.launch(*problem.collective, calls.all(), 1)) return failure;
  if (auto failure = team_.synchronize()) return failure;
  std::vector<std::vector<double>> sums;
  std::vector<std::vector<std::int64_t>> low, high;
  std::size_t i = 0;
  for (Member& member : team_.members()) {
    const shoalCompressionReport& r = reports[i++];
    sums.push_back({r.ratio, r.error, static_cast<double>(r.receivedBytes), r.encodeSeconds * 1e6});
    // Bits of the result, folded into as many numbers as make a chance agreement unlikely, and cheap.
    std::vector<std::int64_t> folded(options_.checks > 0 ? 64 : 0);
    const std::span<const std::byte> receive = regions_of(member, problem, options_.unalign).receive;
    for (std::size_t at = 0; at + sizeof(std::uint32_t) <= receive.size() && !folded.empty(); at += sizeof(std::uint32_t)) {
      std::uint32_t bits;
      std::memcpy(&bits, receive.data() + at, sizeof bits);
      std::int64_t& into = folded[at / sizeof bits % folded.size()];
      into = static_cast<std::int64_t>(static_cast<std::uint64_t>(into) * 0x9e3779b97f4a7c15 + bits);
    }
    low.push_back(folded);
    high.push_back(std::move(folded));
  }
  if (auto failure = team_.combine(sums, ncclSum)) return failure;
  const double world = team_.world();
  const std::vector<double>& all = sums.front();
  result.compression =
      Compression{.ratio = all[0] / world, .error = all[1] / world, .moved = all[2] / world, .encode_us = all[3] / world};
  if (options_.checks == 0) return std::nullopt;
  if (auto failure = team_.combine(low, ncclMin)) return failure;
  if (auto failure = team_.combine(high, ncclMax)) return failure;
  std::int64_t wrong = 0;
  for (std::size_t at = 0; at < low.front().size(); ++at) wrong += low.front()[at] == high.front()[at] ? 0 : 1;
  result.wrong = wrong;
  return std::nullopt;
}

}  // namespace shoal::perf
