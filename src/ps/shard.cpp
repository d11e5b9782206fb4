// SPDX-License-Identifier: Apache-2.0
#include "ps/shard.h"

#include <algorithm>
#include <utility>

namespace shoal::ps {
namespace {

Blocks make_blocks(const Config& config, KeyRange range, const std::byte* all_values) {
  const std::size_t width = element_bytes(config.type);
  return {BlockLayout(range, width), all_values == nullptr ? nullptr : all_values + range.first * width};
}

}  // namespace

Shard::Shard(const Config& config, std::size_t server, const Own& own)
    : mode_(config.mode),
      staleness_(static_cast<std::uint64_t>(config.staleness)),
      type_(config.type),
      optimizer_(config, config.rank_of_server(server), own),
      stages_(config.update == Update::custom),
      blocks_(make_blocks(config, Partition(config.shares).range(server), own.initial)),
      workers_(static_cast<std::size_t>(config.workers)) {}

std::uint64_t Shard::slowest_clock() const {
  std::uint64_t slowest = UINT64_MAX, latest = 0;
  for (const Worker& worker : workers_) {
    latest = std::max(latest, worker.clock);
    if (!worker.left) slowest = std::min(slowest, worker.clock);
  }
  return std::min(slowest, latest);
}

std::optional<int> Shard::slowest_worker() const {
  std::optional<int> slowest;
  for (int i = 0; i < static_cast<int>(workers_.size()); ++i)
    if (!at(i).left && (!slowest || at(i).clock < at(*slowest).clock)) slowest = i;
  return slowest;
}

bool Shard::all_have_left() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.left; });
}

bool Shard::may_take(int worker, Wish wish) const {
  const std::uint64_t clock = at(worker).clock;
  switch (mode_) {
    case Mode::sync:
      // Pushes may be one iteration ahead: then two accumulators are all that a server ever holds.
      return clock <= applied_ + (wish == Wish::push ? 1 : 0);
    case Mode::async: return true;
    case Mode::ssp: return clock <= slowest_clock() + staleness_;
  }
  return true;
}

Accumulator& Shard::accumulator(std::uint64_t iteration) {
  const auto [found, fresh] = accumulators_.try_emplace(iteration, blocks_.layout(), type_, static_cast<int>(workers_.size()));
  if (fresh)
    for (int i = 0; i < static_cast<int>(workers_.size()); ++i)
      if (at(i).left || at(i).clock > iteration) found->second.worker_done(i);
  return found->second;
}

Status Shard::push(int worker, KeyRange piece, std::span<const std::byte> values, std::size_t left) {
  if (mode_ == Mode::sync) {
    accumulator(at(worker).clock).add(worker, piece, values);
    return {};
  }
  std::vector<std::byte>& staged = workers_[static_cast<std::size_t>(worker)].staged;
  if (staged.empty() && left == 0 && !stages_) return apply_push(worker, piece, values);
  staged.insert(staged.end(), values.begin(), values.end());
  if (left > 0) return {};
  const std::size_t count = staged.size() / element_bytes(type_);
  const std::vector<std::byte> whole = std::exchange(staged, {});
  return apply_push(worker, {piece.end() - count, count}, whole);
}

Status Shard::apply_push(int worker, KeyRange range, std::span<const std::byte> values) {
  const BlockLayout& layout = blocks_.layout();
  Status result;
  layout.for_each(range, [&](std::size_t block, KeyRange keys) {
    if (!result.is_ok()) return;
    result = optimizer_.apply({.range = keys,
                               .weights = blocks_.own(block).data() + layout.offset(block, keys.first),
                               .gradient = values.data() + (keys.first - range.first) * layout.width(),
                               .workers = 1,
                               .iteration = at(worker).clock});
  });
  return result;
}

Status Shard::tick(int worker) {
  Worker& ticking = workers_[static_cast<std::size_t>(worker)];
  const auto running = accumulators_.find(ticking.clock);
  if (running != accumulators_.end()) running->second.worker_done(worker);
  ++ticking.clock;
  return apply_complete_iterations();
}

Status Shard::leave(int worker) {
  workers_[static_cast<std::size_t>(worker)].left = true;
  for (auto& [iteration, sums] : accumulators_) sums.worker_done(worker);
  return apply_complete_iterations();
}

Status Shard::apply_complete_iterations() {
  if (mode_ != Mode::sync) return {};
  for (const std::uint64_t complete = slowest_clock(); applied_ < complete; ++applied_) {
    if (Status s = apply_iteration(accumulator(applied_)); !s.is_ok()) return s;
    accumulators_.erase(applied_);
  }
  return {};
}

Status Shard::apply_iteration(Accumulator& sums) {
  const BlockLayout& layout = blocks_.layout();
  const auto contributors = std::count_if(workers_.begin(), workers_.end(), [&](const Worker& w) { return w.clock > applied_; });
  for (std::size_t block = 0; block < layout.blocks(); ++block) {
    if (sums.sum(block) == nullptr && !optimizer_.wants_untouched()) continue;
    Block gradient = sums.take_or_zeros(block);
    if (optimizer_.replaces()) {
      blocks_.replace(block, std::move(gradient));
      continue;
    }
    const Status applied = optimizer_.apply({.range = layout.keys_of(block),
                                             .weights = blocks_.own(block).data(),
                                             .gradient = gradient.data(),
                                             .workers = static_cast<int>(contributors),
                                             .iteration = applied_});
    if (!applied.is_ok()) return applied;
  }
  return {};
}

}  // namespace shoal::ps
