// SPDX-License-Identifier: Apache-2.0
#include "engine/execution.h"

#include <algorithm>

#include "core/expects.h"

namespace shoal::engine {
namespace {

// Streaming stores pay once input and output together are far larger than a last-level cache's share.
constexpr std::size_t kStreamStoresFrom = 16 << 20;
constexpr std::size_t kMaxLanes = 4;
constexpr std::size_t kCacheLine = 64;

}  // namespace

Execution::Execution(Links& links, World world, Rank rank, std::uint64_t communicator, std::vector<pid_t> pids)
    : links_(links),
      world_(world),
      rank_(rank),
      communicator_(communicator),
      boards_(links, world, rank, kBoardChannel),
      mapped_(world, pids),
      pulled_(world, std::move(pids)),
      transfers_(links) {
  for (std::size_t i = 0; i < kMaxLanes * kMaxInFlight; ++i) tracks_.emplace_back(links);
}

Bytes part_limit(std::int32_t widest, Bytes slice) {
  return {std::max<std::size_t>(slice.value / static_cast<std::size_t>(std::max(widest, 1)), 1)};
}

void Execution::start(const Call& call, const plan::Plan& plan, Bytes part, int slices_in_flight) {
  expects(plan.lanes.size() <= kMaxLanes && slices_in_flight <= kMaxInFlight, "a plan of few lanes, with few slices in flight");
  expects(plan.boards == plan::Boards::unused, "a plan over links");
  transferring_ = false;
  on_boards_ = nullptr;
  // How many slices are in flight, and where they are cut, is agreed, though not how many there are where only two ranks know a
  // block's length.
  const bool agreed = call.collective != plan::Collective::all_to_all_v;
  const Slicing slicing = (agreed ? make_slicing : make_fixed_slicing)(call.count, call.type, plan.chunks, part);
  job_.call = call;
  job_.plan = &plan;
  job_.layout = Layout(call, plan, slicing);
  job_.slices = call.collective == plan::Collective::barrier ? 1 : slicing.slices;
  job_.kernels = &device::kernels(call.type, call.op);
  job_.tag = {signature(call, communicator_)};
  job_.scales_input = plan::is_reduction(call.collective) && device::scales_input(call.type, call.op);
  job_.stream_stores = size_of(call.count, call.type).value >= kStreamStoresFrom;

  const auto most = static_cast<std::size_t>(slices_in_flight);
  const std::size_t in_flight = agreed ? std::min(job_.slices, most) : most;
  const std::size_t scratch_each = static_cast<std::size_t>(plan.scratch) * job_.layout.slot_bytes();
  std::byte* memory = scratch(scratch_each * in_flight * plan.lanes.size());

  used_ = running_ = 0;
  for (const plan::Lane& lane : plan.lanes)
    for (std::size_t i = 0; i < in_flight; ++i) {
      Track& track = tracks_[used_++];
      expects(lane.channel < kMaxChannels, "a lane on one of the channels that plans have");
      const int channel = lane.channel * kMaxInFlight + static_cast<int>(i);
      track.start(job_, lane, channel, i, in_flight, memory);
      memory += scratch_each;
      if (!track.done()) ++running_;
    }
}

void Execution::start_on_boards(const Call& call, plan::Boards how, std::span<std::byte> board, Bytes piece) {
  used_ = running_ = 0;
  transferring_ = false;
  on_boards_ = how == plan::Boards::two_shot ? static_cast<BoardCall*>(&two_shot_) : &one_shot_;
  on_boards_->start(call, {boards_, board, world_, rank_, {signature(call, communicator_)}, piece});
}

void Execution::start_mapped(const Call& call, std::span<std::byte> board, std::function<void(const Call&)> otherwise) {
  used_ = running_ = 0;
  transferring_ = false;
  on_boards_ = &mapped_;
  otherwise_ = std::move(otherwise);
  mapped_.start(call, {boards_, board, world_, rank_, {signature(call, communicator_)}, {}});
}

void Execution::start_pulled(const Call& call, std::span<std::byte> board, std::function<void(const Call&)> otherwise) {
  used_ = running_ = 0;
  transferring_ = false;
  on_boards_ = &pulled_;
  otherwise_ = std::move(otherwise);
  pulled_.start(call, {boards_, board, world_, rank_, {signature(call, communicator_)}, {}});
}

void Execution::start(std::vector<Transfer> transfers, Bytes message) {
  used_ = running_ = 0;
  transferring_ = true;
  on_boards_ = nullptr;
  transfers_.start(std::move(transfers), communicator_, kTransferChannel, message);
}

std::byte* Execution::scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_.reset();
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(bytes + kCacheLine);
    scratch_bytes_ = bytes;
  }
  void* start = scratch_.get();
  std::size_t space = scratch_bytes_ + kCacheLine;
  return start == nullptr ? nullptr : static_cast<std::byte*>(std::align(kCacheLine, scratch_bytes_, start, space));
}

bool Execution::advance() {
  bool moved = false;
  for (std::size_t i = 0; i < used_; ++i) {
    Track& track = tracks_[i];
    if (track.done()) continue;
    moved |= track.advance();
    if (track.done()) --running_;
  }
  if (on_boards_ != nullptr && !on_boards_->done()) moved |= on_boards_->advance();
  if ((on_boards_ == &mapped_ && mapped_.declined()) || (on_boards_ == &pulled_ && pulled_.declined()))
    std::exchange(otherwise_, nullptr)(on_boards_->call());
  if (transferring_ && !transfers_.done()) moved |= transfers_.advance();
  return moved;
}

Traffic Execution::traffic() const {
  Traffic all;
  if (on_boards_ != nullptr) return on_boards_->traffic();
  for (std::size_t i = 0; i < used_; ++i) {
    all.sent.value += tracks_[i].traffic().sent.value;
    all.received.value += tracks_[i].traffic().received.value;
  }
  return all;
}

const Status& Execution::failure() const {
  for (std::size_t i = 0; i < used_; ++i)
    if (!tracks_[i].failure().is_ok()) return tracks_[i].failure();
  return on_boards_ != nullptr ? on_boards_->failure() : transfers_.failure();
}

std::string Execution::describe() const {
  return transferring_ ? engine::describe(transfers_.current()) : engine::describe(call());
}

// How far the slowest lane is.
std::string Execution::progress() const {
  if (transferring_) return "";
  if (on_boards_ != nullptr) return on_boards_->progress();
  std::size_t slice = job_.slices;
  for (std::size_t i = 0; i < used_; ++i)
    if (!tracks_[i].done()) slice = std::min(slice, tracks_[i].slice());
  return fmt::format(", slice {} of {}", std::min(slice + 1, job_.slices), job_.slices);
}

Standing Execution::standing() const {
  const Waiting awaited = waiting();
  link::Link* const over = links_.get(awaited.peer, awaited.channel);
  Standing standing;
  standing.doing = fmt::format("{}{}, {} rank {} ({})", describe(), progress(),
                               over == nullptr      ? "no connection to"
                               : awaited.to_receive ? "nothing from"
                                                    : "no room towards",
                               awaited.peer.value, over == nullptr ? "connecting" : over->transport());
  standing.waits_for = awaited.peer;
  if (transferring_) standing.transfers = transfers_.open();
  return standing;
}

Waiting Execution::waiting() const {
  for (std::size_t i = 0; i < used_; ++i)
    if (!tracks_[i].done()) return tracks_[i].waiting();
  if (on_boards_ != nullptr) return on_boards_->waiting();
  if (!transferring_ || transfers_.done()) return tracks_.front().waiting();
  return {transfers_.current().peer, kTransferChannel, !transfers_.current().sending};
}

}  // namespace shoal::engine
