// SPDX-License-Identifier: Apache-2.0
// The collectives that compressors are made of, as calls on bytes and floats.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "engine/call.h"
#include "plan/plan.h"

namespace shoal::compress {

// In place: the sum (or the maximum) over ranks of n floats.
inline engine::Call all_reduce(float* data, std::size_t n, ReduceOp op = ReduceOp::sum) {
  return {.collective = plan::Collective::all_reduce, .input = data, .output = data, .count = {n}, .op = op};
}

// Every rank's `bytes` bytes, one block after the other.
inline engine::Call all_gather(const void* own, void* all, std::size_t bytes) {
  return {.collective = plan::Collective::all_gather, .input = own, .output = all, .count = {bytes}, .type = DataType::uint8};
}

// Blocks of different numbers of bytes, one after the other. Used again from call to call without an allocation: what an earlier
// call still holds is left to it.
class BlockLengths {
 public:
  // For a new call: zeros, [world] each, to be filled in.
  void renew(World world) {
    const auto free = std::find_if(pool_.begin(), pool_.end(), [](const auto& each) { return each.use_count() == 1; });
    if (free == pool_.end())
      pool_.push_back(std::make_shared<engine::Uneven>());
    else
      std::iter_swap(free, pool_.end() - 1);
    lengths_ = pool_.back().get();
    for (engine::Blocks* each : {&lengths_->input, &lengths_->output}) {
      each->counts.assign(static_cast<std::size_t>(world.value), 0);
      each->offsets.assign(each->counts.size(), 0);
    }
  }
  std::vector<std::size_t>& sent() { return lengths_->input.counts; }
  std::vector<std::size_t>& received() { return lengths_->output.counts; }

  // sent() to every rank, received() from every rank. `in` and `out` have room for their sums.
  engine::Call all_to_all(const std::byte* in, std::byte* out) {
    lay(lengths_->input);
    lay(lengths_->output);
    return call(plan::Collective::all_to_all_v, in, out, std::max(longest(lengths_->input), longest(lengths_->output)));
  }
  // received() from every rank, the same on all ranks; `own` holds this rank's.
  engine::Call all_gather(const std::byte* own, std::byte* all) {
    lay(lengths_->output);
    lengths_->input.counts = lengths_->output.counts;
    lengths_->input.offsets.clear();
    return call(plan::Collective::all_gather_v, own, all, longest(lengths_->output));
  }
  // After that: where the block to, or from, rank q begins.
  std::size_t sent_at(std::size_t q) const { return lengths_->input.offsets[q]; }
  std::size_t received_at(std::size_t q) const { return lengths_->output.offsets[q]; }

 private:
  static void lay(engine::Blocks& blocks) {
    std::exclusive_scan(blocks.counts.begin(), blocks.counts.end(), blocks.offsets.begin(), std::size_t{0});
  }
  static std::size_t longest(const engine::Blocks& blocks) {
    return *std::max_element(blocks.counts.begin(), blocks.counts.end());
  }
  engine::Call call(plan::Collective collective, const std::byte* in, std::byte* out, std::size_t longest) const {
    engine::Call call{.collective = collective, .input = in, .output = out, .count = {longest}, .type = DataType::uint8};
    call.uneven = pool_.back();
    return call;
  }

  std::vector<std::shared_ptr<engine::Uneven>> pool_;
  engine::Uneven* lengths_ = nullptr;  // the pool's last one
};

}  // namespace shoal::compress
