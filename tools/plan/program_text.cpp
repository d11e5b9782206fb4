// SPDX-License-Identifier: Apache-2.0
#include "tools/plan/program_text.h"

#include <fmt/format.h>

namespace shoal::plan_tool {

using namespace plan;

std::string text_of(const Rotating& index, bool in_loop) {
  if (!in_loop || index.stride == 0) return std::to_string(index.at(0));
  const std::int32_t by = index.stride < 0 ? -index.stride : index.stride;
  std::string text = fmt::format("({} {} {}i) mod {}", index.start, index.stride < 0 ? "-" : "+",
                                 by == 1 ? "" : fmt::format("{} ", by), index.modulus);
  if (index.scale != 1) text = fmt::format("{} ({})", index.scale, text);
  return index.base == 0 ? text : fmt::format("{} + {}", index.base, text);
}

std::string text_of(const Chunk& chunk, bool in_loop) {
  if (!in_loop || chunk.index.stride == 0 || chunk.buffer == Buffer::none) return describe(chunk, 0);
  const std::string whole = describe(chunk, 0);
  std::string text = text_of(chunk.index, true);
  if (chunk.size > 1) {
    text += fmt::format(", {} chunks", chunk.size);
    if (chunk.run < chunk.size) text += fmt::format(" by {} every {}", chunk.run, chunk.pitch);
    if (chunk.wrap != 0) text += fmt::format(" mod {}", chunk.wrap);
  }
  return fmt::format("{}[{}]", whole.substr(0, whole.find('[')), text);
}

std::string text_of(const Step& step, bool in_loop) {
  std::string text(name_of(step.op));
  if (receives(step.op) || step.op == Op::copy_shared) text += " from " + text_of(step.from, in_loop);
  if (sends(step.op)) text += " to " + text_of(step.to, in_loop);
  if (!carries_data(step.op)) return text;
  text += ":";
  if (step.source.buffer != Buffer::none) text += " " + text_of(step.source, in_loop);
  if (step.target.buffer != Buffer::none) text += " -> " + text_of(step.target, in_loop);
  return step.final ? text + " final" : text;
}

std::string head_of(const Loop& loop) { return loop.iterations == 1 ? "" : fmt::format("for i in 0..{}", loop.iterations - 1); }

std::string properties(const Plan& plan) {
  const auto several = [](std::int32_t n, const char* thing) { return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s"); };
  std::string text =
      several(plan.chunks, "chunk") + (in_blocks(plan.collective) ? " a block, " : ", ") + several(plan.credits, "credit");
  if (plan.scratch > 0) text += ", " + several(plan.scratch, "scratch slot");
  if (plan.shared > 0) text += ", " + several(plan.shared, "shared slot");
  if (plan.by_reference) text += ", by reference";
  if (plan.pipelined) text += ", pipelined";
  if (plan.order == Order::butterfly) text += ", adds in the order of recursive doubling";
  return text;
}

std::string program_text(const Plan& plan) {
  std::string text;
  for (std::size_t l = 0; l < plan.lanes.size(); ++l) {
    const Lane& lane = plan.lanes[l];
    std::string indent = "  ";
    if (plan.lanes.size() > 1 || lane.channel != 0) {
      text += fmt::format("  lane {}, channel {}\n", l, lane.channel);
      indent = "    ";
    }
    for (const Loop& loop : lane.loops) {
      if (loop.iterations <= 0) continue;
      const std::string head = head_of(loop);
      if (!head.empty()) text += indent + head + "\n";
      for (const Step& step : loop.steps)
        text += fmt::format("{}{}{}\n", indent, head.empty() ? "" : "  ", text_of(step, !head.empty()));
    }
  }
  return text.empty() ? "  nothing to do\n" : text;
}

}  // namespace shoal::plan_tool
