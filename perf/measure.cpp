// SPDX-License-Identifier: Apache-2.0
#include "perf/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <utility>

namespace shoal::perf {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration span) { return std::chrono::duration<double, std::micro>(span).count(); }

double thread_cpu_us() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

// What compressors see of a gradient: normal values of all magnitudes, other ones on each rank.
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

// Of a vector of so many elements seen as a matrix: as square as powers of two make it.
std::size_t rows_of(std::size_t count) {
  std::size_t rows = 1;
  while (count % (2 * rows) == 0 && 4 * rows * rows <= count) rows *= 2;
  return rows;
}

}  // namespace

MaybeFailure Measurer::measure(const Problem& problem, Measurement& result) {
  if (auto failure = make_calls(problem)) return failure;
  prepare(problem, 0);
  Times times;
  if (auto failure = time_calls(problem, times)) return failure;
  if (auto failure = average(times)) return failure;
  const int world = team_.world();
  result =
      make_measurement(problem.extent(world).total * problem.type->bytes, times.wall_us, problem.collective->bus_factor(world));
  if (options_.cpu_time) result.cpu_us = times.cpu_us;
  if (options_.per_iteration) result.iterations = iteration_statistics(std::move(times.iterations_us));
  if (!options_.compressor.empty()) {
    if (auto failure = check_compressed(problem, result)) return failure;
  } else if (options_.checks > 0) {
    std::int64_t wrong = 0;
    if (auto failure = check(problem, wrong)) return failure;
    result.wrong = wrong;
  }
  release_operations();
  return std::nullopt;
}

std::span<std::byte> Measurer::send_region(Member& member, const Problem& problem) const {
  const Extent extent = problem.extent(team_.world());
  const std::size_t size = problem.type->bytes, shift = static_cast<std::size_t>(options_.unalign) * size;
  if (!problem.in_place) return member.send.region(shift, extent.send * size);
  return member.receive.region(shift + problem.collective->in_place(extent, place(member, problem)).send * size,
                               extent.send * size);
}

std::span<std::byte> Measurer::receive_region(Member& member, const Problem& problem) const {
  const Extent extent = problem.extent(team_.world());
  const std::size_t size = problem.type->bytes, shift = static_cast<std::size_t>(options_.unalign) * size;
  const std::size_t offset = problem.in_place ? problem.collective->in_place(extent, place(member, problem)).receive : 0;
  return member.receive.region(shift + offset * size, extent.receive * size);
}

std::span<std::byte> Measurer::region_in_use(Member& member, const Problem& problem) const {
  const auto receive = receive_region(member, problem), send = send_region(member, problem);
  if (!problem.in_place) return receive;
  return {std::min(receive.data(), send.data()), std::max(receive.data() + receive.size(), send.data() + send.size())};
}

Pattern Measurer::make_pattern(const Problem& problem, std::uint64_t seed) const {
  const Extent extent = problem.extent(team_.world());
  return {{problem.type, problem.reduction->reduction, team_.world(), seed}, std::max(extent.send, extent.receive)};
}

void Measurer::prepare(const Problem& problem, std::uint64_t seed) {
  Pattern pattern = make_pattern(problem, seed);
  for (Member& member : team_.members()) {
    problem.collective->prepare(pattern, place(member, problem), send_region(member, problem));
    if (!options_.compressor.empty()) write_gradient(member.rank, send_region(member, problem));
  }
}

MaybeFailure Measurer::make_calls(const Problem& problem) {
  calls_.clear();
  const std::size_t count = problem.extent(team_.world()).count;
  for (Member& member : team_.members()) {
    ncclRedOp_t op = problem.reduction->op;
    if (problem.reduction->reduction == Reduction::mulsum && problem.collective->reduces) {
      const ElementType& type = *problem.type;
      const int factor = mulsum_factor(member.rank);
      std::array<std::byte, 8> scalar = {};
      store(type, type.kind == Kind::floating ? encode(type, factor) : static_cast<Bits>(factor), scalar.data());
      const ncclResult_t made = ncclRedOpCreatePreMulSum(&op, scalar.data(), type.type, ncclScalarHostImmediate, member.comm);
      if (made != ncclSuccess) return make_failure(made, "ncclRedOpCreatePreMulSum", fmt::format("{}", member.rank));
      made_operations_ = true;
    }
    calls_.push_back({send_region(member, problem).data(), receive_region(member, problem).data(), count, problem.type->type, op,
                      problem.root, member.comm, member.stream});
    if (options_.compressor.empty()) continue;
    calls_.back().rows = rows_of(count);
    const ncclResult_t made =
        shoalCompressorCreate(&calls_.back().compressor, options_.compressor.c_str(), options_.compressor_options.c_str());
    if (made != ncclSuccess) return make_failure(made, "shoalCompressorCreate", fmt::format("{}", member.rank));
  }
  return std::nullopt;
}

void Measurer::release_operations() {
  for (Call& call : calls_)
    if (call.compressor != nullptr) shoalCompressorDestroy(std::exchange(call.compressor, nullptr));
  if (!made_operations_) return;
  for (const Call& call : calls_) ncclRedOpDestroy(call.op, call.comm);
  made_operations_ = false;
}

MaybeFailure Measurer::wait_as_asked() {
  if (options_.blocking == 0) return std::nullopt;
  if (auto failure = team_.synchronize()) return failure;
  return options_.blocking >= 2 ? team_.barrier() : std::nullopt;
}

MaybeFailure Measurer::time_calls(const Problem& problem, Times& times) {
  for (int i = 0; i < options_.warmup; ++i) {
    if (auto failure = team_.launch(*problem.collective, calls_, options_.aggregate)) return failure;
  }
  if (auto failure = team_.synchronize()) return failure;
  if (options_.per_iteration) times.iterations_us.reserve(static_cast<std::size_t>(options_.iterations));
  if (auto failure = team_.barrier()) return failure;

  const double cpu_start = thread_cpu_us();
  const auto start = Clock::now();
  auto last = start;
  for (int i = 0; i < options_.iterations; ++i) {
    if (auto failure = team_.launch(*problem.collective, calls_, options_.aggregate)) return failure;
    if (auto failure = wait_as_asked()) return failure;
    if (!options_.per_iteration) continue;
    if (auto failure = team_.synchronize()) return failure;
    const auto now = Clock::now();
    if (i >= options_.per_iteration_skip) times.iterations_us.push_back(microseconds(now - last) / options_.aggregate);
    last = now;
  }
  const double cpu = thread_cpu_us() - cpu_start;  // with streams: what it costs to enqueue
  if (auto failure = team_.synchronize()) return failure;
  const double calls = static_cast<double>(options_.iterations) * options_.aggregate;
  times.wall_us = microseconds(Clock::now() - start) / calls;
  times.cpu_us = cpu / calls;
  return team_.barrier();
}

// Over all ranks, as -a asks; afterwards all ranks hold the same numbers.
MaybeFailure Measurer::average(Times& times) {
  std::vector<double> mine = {times.wall_us, times.cpu_us};
  mine.insert(mine.end(), times.iterations_us.begin(), times.iterations_us.end());
  std::vector<std::vector<double>> values;
  for (const Member& member : team_.members()) {
    const bool counts = options_.average != Average::rank_0 || member.rank == 0;
    values.push_back(counts ? mine : std::vector<double>(mine.size(), 0.0));
  }
  const ncclRedOp_t op = options_.average == Average::min ? ncclMin : options_.average == Average::max ? ncclMax : ncclSum;
  if (auto failure = team_.combine(values, op)) return failure;
  const double divisor = options_.average == Average::mean ? team_.world() : 1;
  std::vector<double>& all = values.front();
  for (double& value : all) value /= divisor;
  times.wall_us = all[0];
  times.cpu_us = all[1];
  times.iterations_us.assign(all.begin() + 2, all.end());
  return std::nullopt;
}

MaybeFailure Measurer::check(const Problem& problem, std::int64_t& wrong) {
  std::vector<std::vector<std::int64_t>> counts(team_.members().size(), {0});
  for (int iteration = 1; iteration <= options_.checks; ++iteration) {
    Pattern pattern = make_pattern(problem, static_cast<std::uint64_t>(iteration));
    for (Member& member : team_.members()) {
      const auto receive = receive_region(member, problem), send = send_region(member, problem);
      // What no result looks like by chance in every element: left-overs of the call before would be right.
      if (!problem.in_place) std::fill(receive.begin(), receive.end(), std::byte{0x5a});
      problem.collective->prepare(pattern, place(member, problem), send);
      Buffer::mark(region_in_use(member, problem));
      if (!problem.in_place) Buffer::mark(send);
    }
    if (auto failure = team_.launch(*problem.collective, calls_, 1)) return failure;
    if (auto failure = team_.synchronize()) return failure;
    std::size_t i = 0;
    for (Member& member : team_.members()) counts[i++][0] += count_wrong(problem, member, pattern);
  }
  if (auto failure = team_.combine(counts, ncclSum)) return failure;
  wrong = counts.front()[0];
  return std::nullopt;
}

MaybeFailure Measurer::check_compressed(const Problem& problem, Measurement& result) {
  reports_.assign(calls_.size(), {});
  for (std::size_t i = 0; i < calls_.size(); ++i) calls_[i].report = &reports_[i];
  prepare(problem, 0);
  if (auto failure = team_.launch(*problem.collective, calls_, 1)) return failure;
  if (auto failure = team_.synchronize()) return failure;
  std::vector<std::vector<double>> sums;
  std::vector<std::vector<std::int64_t>> low, high;
  std::size_t i = 0;
  for (Member& member : team_.members()) {
    const shoalCompressionReport& r = reports_[i++];
    sums.push_back({r.ratio, r.error, static_cast<double>(r.receivedBytes), r.encodeSeconds * 1e6});
    // Bits of the result, folded into as many numbers as make a chance agreement unlikely, and cheap.
    std::vector<std::int64_t> folded(options_.checks > 0 ? 64 : 0);
    const std::span<const std::byte> receive = receive_region(member, problem);
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

std::int64_t Measurer::count_wrong(const Problem& problem, Member& member, Pattern& pattern) {
  const auto receive = receive_region(member, problem);
  if (flip_rank_ == member.rank && !receive.empty()) receive[problem.type->bytes - 1] ^= std::byte{0xff};
  std::int64_t wrong = problem.collective->check(pattern, place(member, problem), receive);
  const bool intact =
      Buffer::untouched(region_in_use(member, problem)) && (problem.in_place || Buffer::untouched(send_region(member, problem)));
  if (!intact) {
    std::fprintf(stderr, "shoal-perf: rank %d: bytes beside a buffer of %zu bytes were overwritten\n", member.rank,
                 receive.size());
    ++wrong;
  }
  return wrong;
}

}  // namespace shoal::perf
