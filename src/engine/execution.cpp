// SPDX-License-Identifier: Apache-2.0
#include "engine/execution.h"

#include <algorithm>

#include "core/expects.h"

namespace shoal::engine {
namespace {

// Streaming stores pay once input and output together are far larger than a last-level cache's share.
constexpr std::size_t kStreamStoresFrom = 16 << 20;

}  // namespace

Execution::Execution(Links& links, std::uint64_t communicator) : links_(links), communicator_(communicator) {
  for (std::size_t i = 0; i < kMaxLanes * kMaxInFlight; ++i) tracks_.emplace_back(links);
}

void Execution::start(const Call& call, const plan::Plan& plan, const Tuning& tuning) {
  expects(plan.lanes.size() <= kMaxLanes && tuning.in_flight <= kMaxInFlight, "a plan of few lanes, with few slices in flight");
  job_.call = call;
  job_.plan = &plan;
  job_.slicing = make_slicing(call.count, call.type, plan.chunks, tuning.slice);
  job_.kernels = &device::kernels(call.type, call.op);
  job_.tag = {signature(call, communicator_)};
  job_.scales_input = device::scales_input(call.type, call.op);
  job_.stream_stores = size_of(call.count, call.type).value >= kStreamStoresFrom;

  used_ = running_ = 0;
  const std::size_t in_flight = std::min(job_.slicing.slices, static_cast<std::size_t>(tuning.in_flight));
  for (std::size_t l = 0; l < plan.lanes.size(); ++l)
    for (std::size_t i = 0; i < in_flight; ++i) {
      Track& track = tracks_[used_++];
      track.start(job_, plan.lanes[l], static_cast<int>(l) * kMaxInFlight + static_cast<int>(i), i, in_flight);
      if (!track.done()) ++running_;
    }
}

bool Execution::advance() {
  bool moved = false;
  for (std::size_t i = 0; i < used_; ++i) {
    Track& track = tracks_[i];
    if (track.done()) continue;
    moved |= track.advance();
    if (track.done()) --running_;
  }
  return moved;
}

const Status& Execution::failure() const {
  for (std::size_t i = 0; i < used_; ++i)
    if (!tracks_[i].failure().is_ok()) return tracks_[i].failure();
  return links_.failure();
}

const Track& Execution::waiting_track() const {
  for (std::size_t i = 0; i < used_; ++i)
    if (!tracks_[i].done()) return tracks_[i];
  return tracks_.front();
}

}  // namespace shoal::engine
