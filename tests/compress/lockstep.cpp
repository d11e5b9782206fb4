// SPDX-License-Identifier: Apache-2.0
#include "compress/lockstep.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "device/reduce.h"

namespace testing {
namespace {

using shoal::element_bytes;
using shoal::engine::Call;
using shoal::plan::Collective;
using Bytes = std::vector<std::byte>;

// Every rank's input, copied: the output may be the same memory.
std::vector<Bytes> inputs_of(const std::vector<Call>& calls) {
  const std::size_t world = calls.size();
  std::vector<Bytes> all(world);
  for (std::size_t r = 0; r < world; ++r) {
    const Call& call = calls[r];
    const std::size_t width = element_bytes(call.type);
    std::size_t elements = call.count.value;
    if (call.collective == Collective::all_to_all) elements *= world;
    if (call.collective == Collective::all_gather_v) elements = call.uneven->output.counts[r];
    if (call.collective == Collective::all_to_all_v) {
      elements = 0;
      for (std::size_t q = 0; q < world; ++q)
        elements = std::max(elements, call.uneven->input.offsets[q] + call.uneven->input.counts[q]);
    }
    all[r].resize(elements * width);
    if (!all[r].empty()) std::memcpy(all[r].data(), call.input, all[r].size());
  }
  return all;
}

void copy(const Call& call, std::size_t to, const Bytes& from, std::size_t first, std::size_t elements) {
  const std::size_t width = element_bytes(call.type);
  if (elements > 0) std::memcpy(static_cast<std::byte*>(call.output) + to * width, from.data() + first * width, elements * width);
}

std::string run(const std::vector<Call>& calls, Outcome& outcome) {
  const std::size_t world = calls.size();
  const std::vector<Bytes> inputs = inputs_of(calls);
  const Call& one = calls.front();
  const std::size_t width = element_bytes(one.type);
  const auto moved = [&](std::size_t from, std::size_t to, std::size_t elements) {
    if (from == to) return;
    outcome.sent[from] += static_cast<double>(elements * width);
    outcome.received[to] += static_cast<double>(elements * width);
  };
  switch (one.collective) {
    case Collective::all_reduce: {
      Bytes sum = inputs[0];
      for (std::size_t r = 1; r < world; ++r)
        shoal::device::kernels(one.type, one.op).combine({sum.data()}, sum.data(), inputs[r].data(), one.count.value, one.scale);
      for (std::size_t r = 0; r < world; ++r) {
        copy(calls[r], 0, sum, 0, one.count.value);
        const double ring = 2.0 * static_cast<double>((world - 1) * sum.size()) / static_cast<double>(world);
        outcome.sent[r] += ring;
        outcome.received[r] += ring;
      }
      return "";
    }
    case Collective::all_gather:
      for (std::size_t r = 0; r < world; ++r)
        for (std::size_t q = 0; q < world; ++q) {
          copy(calls[r], q * one.count.value, inputs[q], 0, one.count.value);
          moved(q, r, one.count.value);
        }
      return "";
    case Collective::all_to_all:
      for (std::size_t r = 0; r < world; ++r)
        for (std::size_t q = 0; q < world; ++q) {
          copy(calls[r], q * one.count.value, inputs[q], r * one.count.value, one.count.value);
          moved(q, r, one.count.value);
        }
      return "";
    case Collective::all_gather_v:
      for (std::size_t r = 0; r < world; ++r) {
        const shoal::engine::Blocks& blocks = calls[r].uneven->output;
        if (blocks.counts != one.uneven->output.counts) return fmt::format("rank {}: other lengths than rank 0's", r);
        for (std::size_t q = 0; q < world; ++q) {
          copy(calls[r], blocks.offsets[q], inputs[q], 0, blocks.counts[q]);
          moved(q, r, blocks.counts[q]);
        }
      }
      return "";
    case Collective::all_to_all_v:
      for (std::size_t r = 0; r < world; ++r)
        for (std::size_t q = 0; q < world; ++q) {
          const std::size_t n = calls[r].uneven->output.counts[q];
          if (calls[q].uneven->input.counts[r] != n)
            return fmt::format("rank {} sends {} to rank {}, which expects {}", q, calls[q].uneven->input.counts[r], r, n);
          copy(calls[r], calls[r].uneven->output.offsets[q], inputs[q], calls[q].uneven->input.offsets[r], n);
          moved(q, r, n);
        }
      return "";
    default: return fmt::format("no plain loop for {}", shoal::plan::name_of(one.collective));
  }
}

}  // namespace

Ranks make_ranks(std::string_view name, std::string_view options, shoal::compress::Shape shape, int world) {
  const shoal::compress::Kind* kind = shoal::compress::find_kind(name);
  REQUIRE(kind != nullptr);
  const auto parsed = shoal::compress::Options::parse(options, kind->options, name);
  INFO(parsed.status().text());
  REQUIRE(parsed.is_ok());
  Ranks ranks;
  for (int r = 0; r < world; ++r) ranks.push_back(kind->make(*kind, *parsed, shape, 42));
  return ranks;
}

void run_alone(const shoal::engine::Call& call) {
  Outcome ignored;
  ignored.sent.resize(1);
  ignored.received.resize(1);
  REQUIRE(run({call}, ignored) == "");
}

Outcome all_reduce(const Ranks& ranks, const std::vector<std::vector<float>>& inputs, bool average, bool measure) {
  const std::size_t world = ranks.size(), n = inputs.front().size();
  Outcome outcome;
  outcome.outputs.assign(world, std::vector<float>(n, -12345.0F));
  outcome.sent.resize(world);
  outcome.received.resize(world);
  const shoal::World size{static_cast<std::int32_t>(world)};
  std::vector<shoal::compress::Stages> stages;
  for (std::size_t r = 0; r < world; ++r)
    stages.push_back(ranks[r]->all_reduce(
        {.input = inputs[r].data(),
         .output = outcome.outputs[r].data(),
         .elements = n,
         .scale = average ? 1.0F / static_cast<float>(world) : 1.0F,
         .measure = measure},
        {.world = size,
         .rank = {static_cast<std::int32_t>(r)},
         // 1 us a message round, 1 GB/s
         .predict = [](const Call& call) { return 1e-6 + 1e-9 * static_cast<double>(size_of(call.count, call.type).value); }}));
  for (constexpr int kMost = 10000; outcome.collectives < kMost; ++outcome.collectives) {
    std::vector<Call> calls;
    for (std::size_t r = 0; r < world; ++r) {
      auto next = stages[r].next();
      if (!next.is_ok()) {
        outcome.wrong = fmt::format("rank {}: {}", r, next.status().text());
        return outcome;
      }
      if (next->has_value()) calls.push_back(**next);
    }
    if (calls.empty()) return outcome;
    if (calls.size() != world) {
      outcome.wrong =
          fmt::format("{} of {} ranks are through after {} collectives", world - calls.size(), world, outcome.collectives);
      return outcome;
    }
    for (std::size_t r = 1; r < world; ++r) {
      const Call &a = calls[0], &b = calls[r];
      const bool counts = a.collective == Collective::all_to_all_v || a.count == b.count;
      if (a.collective != b.collective || a.type != b.type || a.op != b.op || !counts) {
        outcome.wrong = fmt::format("rank 0 calls {}, rank {} {}", describe(a), r, describe(b));
        return outcome;
      }
    }
    outcome.wrong = run(calls, outcome);
    if (!outcome.wrong.empty()) return outcome;
  }
  outcome.wrong = "no end";
  return outcome;
}

}  // namespace testing
