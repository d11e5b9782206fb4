// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/expects.h"

namespace shoal::plan {
namespace {

std::string_view name_of(Buffer buffer) {
  switch (buffer) {
    case Buffer::none: return "none";
    case Buffer::input: return "input";
    case Buffer::output: return "output";
    case Buffer::scratch: return "scratch";
    case Buffer::shared: return "shared";
  }
  expects(false, "a buffer of the list");
  return "";
}

}  // namespace

std::string_view name_of(Op op) {
  switch (op) {
    case Op::copy: return "copy";
    case Op::reduce: return "reduce";
    case Op::send: return "send";
    case Op::recv: return "recv";
    case Op::recv_reduce: return "recv_reduce";
    case Op::recv_reduce_send: return "recv_reduce_send";
    case Op::recv_copy_send: return "recv_copy_send";
    case Op::signal: return "signal";
    case Op::wait: return "wait";
    case Op::copy_shared: return "copy_shared";
    case Op::reduce_shared: return "reduce_shared";
  }
  expects(false, "an operation of the list");
  return "";
}

std::int32_t widest(const Plan& plan) {
  std::int32_t most = 0;
  for (const Lane& lane : plan.lanes)
    for (const Loop& loop : lane.loops)
      for (const Step& step : loop.steps)
        for (const Chunk* chunk : {&step.source, &step.target})
          if (chunk->buffer != Buffer::none) most = std::max(most, chunk->size);
  return most;
}

std::int32_t channels(const Plan& plan) {
  std::int32_t most = 0;
  for (const Lane& lane : plan.lanes) most = std::max(most, lane.channel + 1);
  return most;
}

std::string describe(const Chunk& chunk, std::int32_t i) {
  if (chunk.size == 1) return fmt::format("{}[{}]", name_of(chunk.buffer), chunk.at(0, i));
  std::string indices;
  for (std::int32_t t = 0; t < chunk.size;) {  // neighbours as "3..5"; a long set is cut short
    if (indices.size() > 40) {
      indices += fmt::format(",... {} chunks", chunk.size);
      break;
    }
    std::int32_t end = t;
    while (end + 1 < chunk.size && chunk.at(end + 1, i) == chunk.at(end, i) + 1) ++end;
    if (!indices.empty()) indices += ",";
    indices += end == t ? fmt::format("{}", chunk.at(t, i)) : fmt::format("{}..{}", chunk.at(t, i), chunk.at(end, i));
    t = end + 1;
  }
  return fmt::format("{}[{}]", name_of(chunk.buffer), indices);
}

std::string describe(const Step& step, std::int32_t i) {
  std::string text(name_of(step.op));
  if (receives(step.op) || step.op == Op::copy_shared) text += fmt::format(" from {}", step.from.at(i));
  if (sends(step.op)) text += fmt::format(" to {}", step.to.at(i));
  if (!carries_data(step.op)) return text;
  text += ":";
  if (step.source.buffer != Buffer::none) text += " " + describe(step.source, i);
  if (step.target.buffer != Buffer::none) text += " -> " + describe(step.target, i);
  if (step.final) text += " final";
  return text;
}

}  // namespace shoal::plan
