// SPDX-License-Identifier: Apache-2.0
#include "ps/accumulator.h"

#include <utility>

#include "device/reduce.h"

namespace shoal::ps {

Accumulator::Accumulator(const BlockLayout& layout, DataType type, int workers)
    : layout_(layout), type_(type), sums_(layout.blocks()), contributions_(static_cast<std::size_t>(workers)) {}

void Accumulator::add(int worker, KeyRange piece, std::span<const std::byte> values) {
  const auto from = static_cast<std::size_t>(worker);
  if (from == turn_) return add_now(piece, values);
  contributions_[from].kept.push_back({piece, {values.begin(), values.end()}});
}

void Accumulator::worker_done(int worker) {
  contributions_[static_cast<std::size_t>(worker)].done = true;
  while (turn_ < contributions_.size() && contributions_[turn_].done) {
    if (++turn_ == contributions_.size()) return;
    for (const Piece& piece : std::exchange(contributions_[turn_].kept, {})) add_now(piece.keys, piece.values);
  }
}

void Accumulator::add_now(KeyRange piece, std::span<const std::byte> values) {
  layout_.for_each(piece, [&](std::size_t block, KeyRange keys) {
    std::byte* sum = touched(block).data() + layout_.offset(block, keys.first);
    const std::byte* addend = values.data() + (keys.first - piece.first) * layout_.width();
    device::kernels(type_, ReduceOp::sum).combine({sum}, sum, addend, keys.count, {});
  });
}

Block& Accumulator::touched(std::size_t block) {
  if (sums_[block].empty()) sums_[block] = nothing(block);
  return sums_[block];
}

Block Accumulator::take_or_zeros(std::size_t block) { return std::move(touched(block)); }

// -0 is the sign bit alone, the last byte's highest.
Block Accumulator::nothing(std::size_t block) const {
  Block values(layout_.keys_of(block).count * layout_.width());
  for (std::size_t i = layout_.width() - 1; i < values.size(); i += layout_.width()) values[i] = std::byte{0x80};
  return values;
}

}  // namespace shoal::ps
