// SPDX-License-Identifier: Apache-2.0
#include "perf/measure.h"

#include <chrono>
#include <ctime>

namespace shoal::perf {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration span) { return std::chrono::duration<double, std::micro>(span).count(); }

double thread_cpu_us() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

}  // namespace

MaybeFailure Measurer::measure(const Problem& problem, Measurement& result) {
  Calls calls;
  if (auto failure = calls.make(options_, team_, problem)) return failure;
  Pattern pattern = problem.pattern(0);
  write_inputs(problem, pattern);
  if (auto failure = warm_up(problem, calls)) return failure;
  Times times;
  if (auto failure = options_.fresh ? time_fresh_calls(problem, calls, pattern, times) : time_calls(problem, calls, times))
    return failure;
  if (auto failure = average(times)) return failure;
  result = make_measurement(problem.extent(0).moved * problem.type->bytes, times.wall_us,
                            problem.collective->bus_factor(team_.world()));
  if (options_.cpu_time) result.cpu_us = times.cpu_us;
  if (options_.per_iteration) result.iterations = iteration_statistics(std::move(times.iterations_us));
  if (!options_.compressor.empty()) return verifier_.check_compressed(problem, calls, result);
  if (options_.checks == 0) return std::nullopt;
  return verifier_.check(problem, calls, result.wrong.emplace(0));
}

void Measurer::write_inputs(const Problem& problem, Pattern& pattern) {
  for (Member& member : team_.members()) {
    const std::span<std::byte> send = regions_of(member, problem, options_.unalign).send;
    if (options_.compressor.empty())
      problem.collective->prepare(pattern, problem.place(member.rank), send);
    else
      write_gradient(member.rank, send);
  }
}

MaybeFailure Measurer::warm_up(const Problem& problem, const Calls& calls) {
  for (int i = 0; i < options_.warmup; ++i) {
    if (auto failure = team_.launch(*problem.collective, calls.all(), options_.aggregate)) return failure;
  }
  return team_.synchronize();
}

MaybeFailure Measurer::wait_as_asked() {
  if (options_.blocking == 0) return std::nullopt;
  if (auto failure = team_.synchronize()) return failure;
  return options_.blocking >= 2 ? team_.barrier() : std::nullopt;
}

MaybeFailure Measurer::time_calls(const Problem& problem, const Calls& calls, Times& times) {
  if (options_.per_iteration) times.iterations_us.reserve(static_cast<std::size_t>(options_.iterations));
  if (auto failure = team_.barrier()) return failure;

  const double cpu_start = thread_cpu_us();
  const auto start = Clock::now();
  auto last = start;
  for (int i = 0; i < options_.iterations; ++i) {
    if (auto failure = team_.launch(*problem.collective, calls.all(), options_.aggregate)) return failure;
    if (auto failure = wait_as_asked()) return failure;
    if (!options_.per_iteration) continue;
    if (auto failure = team_.synchronize()) return failure;
    const auto now = Clock::now();
    if (i >= options_.per_iteration_skip) times.iterations_us.push_back(microseconds(now - last) / options_.aggregate);
    last = now;
  }
  const double cpu = thread_cpu_us() - cpu_start;  // with streams: what it costs to enqueue
  if (auto failure = team_.synchronize()) return failure;
  const double count = static_cast<double>(options_.iterations) * options_.aggregate;
  times.wall_us = microseconds(Clock::now() - start) / count;
  times.cpu_us = cpu / count;
  return team_.barrier();
}

MaybeFailure Measurer::time_fresh_calls(const Problem& problem, const Calls& calls, Pattern& pattern, Times& times) {
  const double count = static_cast<double>(options_.iterations) * options_.aggregate;
  for (int i = 0; i < options_.iterations; ++i) {
    write_inputs(problem, pattern);
    if (auto failure = team_.barrier()) return failure;
    const double cpu_start = thread_cpu_us();
    const auto start = Clock::now();
    if (auto failure = team_.launch(*problem.collective, calls.all(), options_.aggregate)) return failure;
    // A look at the thread's processor time is a system call: not within a span that may be shorter.
    const bool blocks = !options_.host_stream;
    const double launched = blocks ? 0 : thread_cpu_us();
    if (auto failure = team_.synchronize()) return failure;
    const double span = microseconds(Clock::now() - start);
    times.cpu_us += ((blocks ? thread_cpu_us() : launched) - cpu_start) / count;
    times.wall_us += span / count;
    if (options_.per_iteration && i >= options_.per_iteration_skip) times.iterations_us.push_back(span / options_.aggregate);
  }
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

}  // namespace shoal::perf
