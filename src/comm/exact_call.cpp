// SPDX-License-Identifier: Apache-2.0
#include "comm/exact_call.h"

#include <algorithm>
#include <limits>

namespace shoal::comm {
namespace {

constexpr std::size_t kWords = 1 << 18;  // of a piece's rows, over all blocks

}  // namespace

bool is_inexact(const engine::Call& call) {
  const bool sums = call.op == ReduceOp::sum || call.op == ReduceOp::avg || call.op == ReduceOp::premul_sum;
  return plan::is_reduction(call.collective) && !is_integer(call.type) && sums && call.count.value > 0;
}

ExactCall::ExactCall(const engine::Call& call, World world, Rank rank) : call_(call), world_(world), rank_(rank) {}

Result<std::optional<engine::Call>> ExactCall::next() {
  switch (stage_) {
    case Stage::agree: stage_ = Stage::begin; return std::optional(agree());
    case Stage::begin:
      stage_ = Stage::pieces;
      window_ = device::window_for(needs_);
      break;
    case Stage::pieces:
      decode_piece();
      done_ += piece_;
      break;
  }
  const std::size_t words = window_.words();
  const std::size_t most =
      words == 0 ? std::numeric_limits<std::size_t>::max() : std::max<std::size_t>(1, kWords / words / blocks());
  piece_ = std::min(call_.count.value - done_, most);
  if (piece_ == 0) return std::optional<engine::Call>();
  if (words == 0) {  // nothing but zeros anywhere
    decode_piece();
    return std::optional<engine::Call>();
  }
  if (Status s = encode_piece(); !s.is_ok()) return s;
  engine::Call sum = call_;
  sum.input = digits_.data();
  // In place as the collective defines it.
  const std::size_t own = call_.collective == plan::Collective::reduce_scatter ? static_cast<std::size_t>(rank_.value) : 0;
  sum.output = digits_.data() + own * piece_ * words;
  sum.count = {piece_ * words};
  sum.type = DataType::int64;
  sum.op = ReduceOp::sum;
  sum.scale = {};
  sum.numerics = engine::Numerics::fast;
  return std::optional(sum);
}

engine::Call ExactCall::agree() {
  const void* factor = call_.op == ReduceOp::premul_sum ? call_.factor.data() : nullptr;
  needs_ = device::scan(call_.type, call_.input, call_.count.value * blocks(), factor);
  return {.collective = plan::Collective::all_reduce,
          .input = &needs_,
          .output = &needs_,
          .count = {sizeof needs_ / sizeof(std::int32_t)},
          .type = DataType::int32,
          .op = ReduceOp::max};
}

Status ExactCall::encode_piece() {
  const void* factor = call_.op == ReduceOp::premul_sum ? call_.factor.data() : nullptr;
  const std::size_t words = window_.words(), width = element_bytes(call_.type);
  digits_.resize(blocks() * piece_ * words);
  for (std::size_t b = 0; b < blocks(); ++b) {
    const std::byte* from = static_cast<const std::byte*>(call_.input) + (b * call_.count.value + done_) * width;
    if (!device::encode(call_.type, from, piece_, window_, digits_.data() + b * piece_ * words, factor))
      return fail(Code::invalid_usage, "{}: the input was changed while the call was running", engine::describe(call_));
  }
  return {};
}

void ExactCall::decode_piece() {
  if (!writes_output() || piece_ == 0) return;
  const std::size_t words = window_.words();
  const std::size_t own = call_.collective == plan::Collective::reduce_scatter ? static_cast<std::size_t>(rank_.value) : 0;
  const std::int64_t* rows = words == 0 ? nullptr : digits_.data() + own * piece_ * words;
  const std::uint32_t divisor = call_.op == ReduceOp::avg ? static_cast<std::uint32_t>(world_.value) : 1;
  device::decode(call_.type, rows, piece_, window_, divisor,
                 static_cast<std::byte*>(call_.output) + done_ * element_bytes(call_.type));
}

}  // namespace shoal::comm
