// SPDX-License-Identifier: Apache-2.0
// One call being run: all tracks of a collective's plan over all its slices, or a group's point-to-point transfers. Reused from
// call to call; starting and running a collective allocates nothing once scratch memory has its size. Driven by one thread (see
// drive.h), which may drive several executions of several ranks in turn.
#pragma once

#include <memory>
#include <vector>

#include <functional>

#include "engine/boards.h"
#include "engine/mapped.h"
#include "engine/one_shot.h"
#include "engine/pulled.h"
#include "engine/track.h"
#include "engine/transfers.h"
#include "engine/two_shot.h"

namespace shoal::engine {

// Agreed numbers that say how a plan runs.
struct Tuning {
  Bytes slice{64 << 10};  // bytes of a message, at most what links take
  int in_flight = 2;      // slices that a lane works on at a time
};

inline constexpr int kMaxInFlight = 16;
// The links between two ranks: kMaxChannels x kMaxInFlight for plans, then one for point to point and one over which the two show
// each other their boards.
inline constexpr int kMaxChannels = 2;
inline constexpr int kTransferChannel = kMaxChannels * kMaxInFlight;
inline constexpr int kBoardChannel = kTransferChannel + 1;
inline constexpr int kAllChannels = kBoardChannel + 1;

class Execution {
 public:
  // `pids`: of all ranks' processes.
  Execution(Links& links, World world, Rank rank, std::uint64_t communicator, std::vector<pid_t> pids);

  // Over links, a plan without shared slots. `part`: most bytes of a chunk of a slice, see part_limit.
  void start(const Call& call, const plan::Plan& plan, Bytes part, int in_flight);
  void start(std::vector<Transfer> transfers, Bytes message);
  // Over boards, as the plan says. `board`: this rank's window on kBoardChannel, open; `piece`: see BoardCall.
  void start_on_boards(const Call& call, plan::Boards how, std::span<std::byte> board, Bytes piece);
  bool on_boards() const { return on_boards_ != nullptr; }
  // What ran last ran in one shot and can do so again: the same call, but for its place.
  bool can_start_again() const { return on_boards_ == &one_shot_; }
  void start_again(std::uint64_t ticket, std::uint64_t sequence) { one_shot_.start_again(ticket, sequence, communicator_); }
  // Over memory that all ranks map, if that is what the call's buffers are; else as `otherwise`, which starts it here, says.
  bool takes_to_mapping(const Call& call) { return mapped_.takes(call); }
  void start_mapped(const Call& call, std::span<std::byte> board, std::function<void(const Call&)> otherwise);

  // By ranks that read each other's memory, if they may, and it is the quickest way, or `always`; else as `otherwise` says.
  bool takes_to_pulling(const Call& call, bool always) { return pulled_.takes(call, always); }
  void start_pulled(const Call& call, std::span<std::byte> board, std::function<void(const Call&)> otherwise);

  // Runs what can run now; true if anything moved.
  bool advance();
  // All steps are done and every byte has left this rank.
  bool done() const {
    return running_ == 0 && (on_boards_ == nullptr || on_boards_->done()) && transfers_.done() && links_.flushed();
  }
  // What ran has ended well: for those who measure.
  void ended() { pulled_.ended_elsewhere(); }
  // The first message that does not fit, if any. (Links that cannot be made are a wait that does not end: see drive.cpp.)
  const Status& failure() const;

  // What the collective has moved so far.
  Traffic traffic() const;

  // Long enough for a look at a clock not to count.
  bool is_long() const { return transferring_ || size_of(call().count, call().type).value > kSmall; }

  Links& links() { return links_; }
  // What is being run, for messages.
  std::string describe() const;
  // Something that is waited for; any, if only bytes have yet to leave.
  Waiting waiting() const;
  // Allocates; for the rare look at a call that does not move.
  Standing standing() const;
  // f(Waiting) for everything that is waited for.
  template <typename F>
  void for_each_waiting(F&& f) const {
    for (std::size_t i = 0; i < used_; ++i)
      if (!tracks_[i].done()) f(tracks_[i].waiting());
    if (on_boards_ != nullptr && !on_boards_->done()) f(on_boards_->waiting());
    transfers_.for_each_waiting(f);
  }

 private:
  static constexpr std::size_t kSmall = 4096;  // bytes

  const Call& call() const { return on_boards_ != nullptr ? on_boards_->call() : job_.call; }
  std::byte* scratch(std::size_t bytes);
  std::string progress() const;

  Links& links_;
  World world_;
  Rank rank_;
  std::uint64_t communicator_;
  Job job_;
  std::vector<Track> tracks_;
  std::size_t used_ = 0, running_ = 0;
  Boards boards_;
  OneShot one_shot_;
  TwoShot two_shot_;
  Mapped mapped_;
  Pulled pulled_;
  std::function<void(const Call&)> otherwise_;
  BoardCall* on_boards_ = nullptr;  // null: what runs, runs over links
  Transfers transfers_;
  bool transferring_ = false;
  std::unique_ptr<std::byte[]> scratch_;
  std::size_t scratch_bytes_ = 0;
};

// Bytes of a part (one chunk of one slice) with which no message of up to `widest` chunks is longer than `slice`.
Bytes part_limit(std::int32_t widest, Bytes slice);

}  // namespace shoal::engine
