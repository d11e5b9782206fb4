// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <fmt/format.h>

#include "core/expects.h"

namespace shoal::plan {
namespace {

std::string text_of(const Chunk& chunk, std::int32_t i) {
  return fmt::format("{}[{}]", chunk.buffer == Buffer::input ? "input" : "output", chunk.index.at(i));
}

}  // namespace

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return "all_reduce";
  }
  expects(false, "a collective of the list");
  return "";
}

std::string_view name_of(Op op) {
  switch (op) {
    case Op::copy: return "copy";
    case Op::send: return "send";
    case Op::recv: return "recv";
    case Op::recv_reduce: return "recv_reduce";
    case Op::recv_reduce_send: return "recv_reduce_send";
    case Op::recv_copy_send: return "recv_copy_send";
  }
  expects(false, "an operation of the list");
  return "";
}

std::string describe(const Step& step, std::int32_t i) {
  std::string text(name_of(step.op));
  if (receives(step.op)) text += fmt::format(" from {}", step.from.at(i));
  if (sends(step.op)) text += fmt::format(" to {}", step.to.at(i));
  text += ":";
  if (step.source.buffer != Buffer::none) text += " " + text_of(step.source, i);
  if (step.target.buffer != Buffer::none) text += " -> " + text_of(step.target, i);
  if (step.final) text += " final";
  return text;
}

}  // namespace shoal::plan
