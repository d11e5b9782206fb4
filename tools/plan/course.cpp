// SPDX-License-Identifier: Apache-2.0
#include "tools/plan/course.h"

#include <bit>

#include "plan/counters.h"
#include "tools/plan/arguments.h"

namespace shoal::plan_tool {
namespace {

struct Scheme {
  std::string_view scheme, algorithm;
  Reading reading;
  std::string_view steps, peak, total;
  Cost (*expected)(std::uint64_t p, std::uint64_t lg);
};

// The server is a worker too: it receives p-1 vectors in the first round and sends p-1 in the second.
constexpr Scheme kSchemes[] = {
    {"parameter server", "parameter_server", Reading::round, "2", "N-1", "N-1",
     [](std::uint64_t p, std::uint64_t) {
       return Cost{2, {p - 1}, {p - 1}};
     }},
    {"all-reduce, sequential", "sequential", Reading::round, "N", "N-1", "N-1",
     [](std::uint64_t p, std::uint64_t) {
       return Cost{p, {p - 1}, {p - 1}};
     }},
    {"all-reduce, ring of whole vectors", "whole_ring", Reading::round, "N-1", "1", "N",
     [](std::uint64_t p, std::uint64_t) {
       return Cost{p - 1, {1}, {p}};
     }},
    {"all-reduce, ring", "ring", Reading::whole, "2(N-1)", "2(N-1)/N", "2(N-1)",
     [](std::uint64_t p, std::uint64_t) {
       return Cost{2 * (p - 1), {2 * (p - 1), p}, {2 * (p - 1)}};
     }},
    {"all-reduce, parallel", "all_pairs", Reading::round, "1", "N-1", "N(N-1)",
     [](std::uint64_t p, std::uint64_t) {
       return Cost{1, {p - 1}, {p * (p - 1)}};
     }},
    {"all-reduce, recursive doubling", "recursive_doubling", Reading::round, "log2 N", "1", "N",
     [](std::uint64_t p, std::uint64_t lg) {
       return Cost{lg, {1}, {p}};
     }},
    {"all-reduce, recursive halving", "halving_doubling", Reading::whole, "2 log2 N", "2(N-1)/N", "2(N-1)",
     [](std::uint64_t p, std::uint64_t lg) {
       return Cost{2 * lg, {2 * (p - 1), p}, {2 * (p - 1)}};
     }},
};

}  // namespace

std::string_view name_of(Reading reading) { return reading == Reading::round ? "a round" : "whole"; }

std::string text_of(Vectors vectors) {
  if (vectors.value % vectors.of == 0) return std::to_string(vectors.value / vectors.of);
  const double value = static_cast<double>(vectors.value) / static_cast<double>(vectors.of);
  std::string text = fmt::format("{:.6f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

Result<std::vector<CourseRow>> course_table(World world) {
  if (world.value < 2 || world.value > 1024 || !std::has_single_bit(static_cast<std::uint32_t>(world.value)))
    return fail(Code::invalid_argument, "--world {}: the table is for powers of two from 2 to 1024", world.value);
  const std::uint64_t p = static_cast<std::uint64_t>(world.value);
  const std::uint64_t n = p;  // bytes of the vector: a byte a chunk
  std::vector<CourseRow> rows;
  for (const Scheme& scheme : kSchemes) {
    const algorithms::Algorithm* algorithm = algorithms::find(plan::Collective::all_reduce, scheme.algorithm);
    if (algorithm == nullptr) return fail(Code::internal_error, "all_reduce has no {}", scheme.algorithm);
    const auto plans = plans_of(*algorithm, {.world = world});
    if (!plans.is_ok()) return plans.status();
    const auto counters = plan::count(*plans, {n});
    if (!counters.is_ok()) return counters.status();
    const bool whole = scheme.reading == Reading::whole;
    const Cost counted{counters->rounds.size(),
                       {whole ? counters->peak_node : counters->peak_node_in_a_round(), n},
                       {whole ? counters->total : counters->total_in_a_round(), n}};
    rows.push_back({scheme.scheme, scheme.algorithm, scheme.reading, scheme.steps, scheme.peak, scheme.total,
                    scheme.expected(p, static_cast<std::uint64_t>(std::bit_width(p)) - 1), counted});
  }
  return rows;
}

}  // namespace shoal::plan_tool
