// SPDX-License-Identifier: Apache-2.0
// What a server holds of the keys, and the consistency model: whose message may be taken now, when an update is applied. No
// input or output, no waiting: the same calls in the same order give the same values. One thread.
//
// A worker's clock is the number of iterations that it has ended. Messages of one worker come in its order, so that "it has ended
// iteration t" means that all its pushes of t are here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "ps/accumulator.h"
#include "ps/blocks.h"
#include "ps/config.h"
#include "ps/optimizer.h"

namespace shoal::ps {

enum class Wish : std::uint8_t { push, pull };

class Shard {
 public:
  // Of server number `server`. `own.initial` points at the value of key 0 of all, or is null.
  Shard(const Config& config, std::size_t server, const Own& own);

  KeyRange range() const { return blocks_.layout().range(); }
  std::uint64_t clock(int worker) const { return at(worker).clock; }
  // The smallest clock of those that have not left; the largest there was if all have.
  std::uint64_t slowest_clock() const;
  // Whom the others wait for; nothing if all have left.
  std::optional<int> slowest_worker() const;

  // Whether the worker's next push or pull, at its clock, has its turn. If not, only others can change that: the worker's later
  // messages may wait behind it.
  bool may_take(int worker, Wish wish) const;

  // A piece of a push; `left` keys of the same push follow it, the next from piece.end() on.
  Status push(int worker, KeyRange piece, std::span<const std::byte> values, std::size_t left);
  Snapshot pull(KeyRange range) const { return blocks_.snapshot(range); }
  // The worker ends its iteration.
  Status tick(int worker);
  // As if it had ended all iterations there will be.
  Status leave(int worker);
  bool all_have_left() const;

 private:
  struct Worker {
    std::uint64_t clock = 0;
    bool left = false;
    std::vector<std::byte> staged;  // the pieces of an unfinished push, where updates are applied push by push
  };

  const Worker& at(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  Accumulator& accumulator(std::uint64_t iteration);
  Status apply_push(int worker, KeyRange range, std::span<const std::byte> values);
  Status apply_complete_iterations();
  Status apply_iteration(Accumulator& sums);

  Mode mode_;
  std::uint64_t staleness_;
  DataType type_;
  Optimizer optimizer_;
  bool stages_;  // even a push of one piece: its memory is not aligned
  Blocks blocks_;
  std::vector<Worker> workers_;
  // sync:
  std::uint64_t applied_ = 0;                          // iterations
  std::map<std::uint64_t, Accumulator> accumulators_;  // by iteration: applied_ and, for who is ahead, the one after
};

}  // namespace shoal::ps
