// SPDX-License-Identifier: Apache-2.0
// A call that is run over boards: what every way of doing that has in common. Reused from call to call; nothing is allocated
// after the first. Results and their bits are those of the plan: sums are added in the order of ranks.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "engine/boards.h"
#include "engine/call.h"
#include "engine/composition.h"
#include "engine/waiting.h"

namespace shoal::engine {

class BoardCall {
 public:
  // Where a call is run.
  struct Setting {
    Boards& boards;
    std::span<std::byte> own;  // this rank's window for boards
    World world;
    Rank rank;
    link::Tag tag;
    Bytes piece;  // most bytes of a message, at most Boards::kSlotBytes: agreed
  };
  virtual ~BoardCall() = default;

  virtual void start(const Call& call, const Setting& setting) = 0;
  // Runs what can run now; true if anything moved.
  virtual bool advance() = 0;
  virtual bool done() const = 0;
  // ", piece 3 of 8"
  virtual std::string progress() const = 0;

  const Status& failure() const { return failure_; }
  const Call& call() const { return call_; }
  const Waiting& waiting() const { return waiting_; }
  // What is read on other ranks' boards is received.
  Traffic traffic() const { return {.sent = {}, .received = received_}; }

 protected:
  void begin(const Call& call, const Setting& setting) {
    call_ = call;
    boards_ = &setting.boards;
    own_board_ = setting.own;
    world_ = setting.world.value;
    rank_ = setting.rank.value;
    width_ = element_bytes(call.type);
    kernels_ = &device::kernels(call.type, call.op);
    scales_ = plan::is_reduction(call.collective) && device::scales_input(call.type, call.op);
    stream_stores_ = call.count.value * width_ >= kStreamStoresFrom;
    failure_ = {};
    waiting_ = {{rank_}, boards_->channel(), true};
    begin_again(setting.tag);
  }
  // The same call, which did not fail, in another place of the order.
  void begin_again(link::Tag tag) {
    tag_ = tag;
    first_ = boards_->finished() + 1;
    received_ = {};
  }

  // Whether all boards can be read.
  bool is_open() {
    if (boards_->open(own_board_)) [[likely]]
      return true;
    waiting_.peer = boards_->awaited();
    failure_ = boards_->failure();
    return false;
  }
  // Memory for what this rank shows in an exchange; null: wait.
  std::byte* room(std::uint64_t number, Bytes n) {
    std::byte* const to = boards_->room(number, n);
    if (to == nullptr) {
      waiting_.peer = boards_->awaited();
      waiting_.to_receive = false;
    }
    return to;
  }
  // What a rank shows in an exchange; null: wait.
  const std::byte* shown_by(std::int32_t rank, std::uint64_t number, Bytes n) {
    const Boards::Shown shown = boards_->look({rank}, number, tag_, n);
    if (shown.data == nullptr) {
      waiting_.peer = {rank};
      waiting_.to_receive = true;
      if (shown.another) failure_ = another_call(call_, {rank}, "what it shows has another length or signature");
    }
    return shown.data;
  }
  // Elements of this rank's input, as reductions want them.
  void load(std::byte* to, const std::byte* from, std::size_t elements) const {
    if (scales_)
      kernels_->load_input({to}, from, elements, call_.scale);
    else if (elements > 0)
      device::copy({to}, {from, elements * width_});
  }
  // Sums of n elements of all ranks, added in their order: input(rank) is where a rank's are; null where they cannot be had,
  // which ends it. `partial` has room for them; what is given for rank 0 may be there.
  template <typename Input>
  bool add_in_order(device::Target sums, std::byte* partial, std::size_t n, Input&& input) const {
    const std::byte* sum = input(0);
    if (sum == nullptr) return false;
    if (scales_) {
      kernels_->load_input({partial}, sum, n, call_.scale);
      sum = partial;
    }
    for (std::int32_t rank = 1; rank < world_; ++rank) {
      const bool last = rank == world_ - 1;
      const device::Target target = last ? sums : device::Target{partial};
      const std::byte* const summand = input(rank);
      if (summand == nullptr) return false;
      if (scales_)
        (last ? kernels_->combine_input_final : kernels_->combine_input)(target, summand, sum, n, call_.scale);
      else
        (last ? kernels_->combine_final : kernels_->combine)(target, sum, summand, n, call_.scale);
      sum = partial;
    }
    return true;
  }
  // Elements of a vector.
  struct Range {
    std::size_t first = 0, count = 0;
  };
  // The vector's part that a rank adds: whole cache lines.
  Range chunk_of(std::int32_t rank) const {
    const std::size_t n = call_.count.value, line = 64 / width_, lines = line * static_cast<std::size_t>(world_);
    const std::size_t chunk = (n + lines - 1) / lines * line, first = std::min(n, static_cast<std::size_t>(rank) * chunk);
    return {first, std::min(chunk, n - first)};
  }
  static std::string progress_of(std::uint64_t piece, std::uint64_t pieces) {
    return pieces > 1 ? fmt::format(", piece {} of {}", std::min(piece + 1, pieces), pieces) : "";
  }

  Call call_;
  Boards* boards_ = nullptr;
  std::span<std::byte> own_board_;
  const device::ReduceKernels* kernels_ = nullptr;
  std::int32_t world_ = 1, rank_ = 0;
  link::Tag tag_;
  std::size_t width_ = 1;    // bytes of an element
  std::uint64_t first_ = 0;  // the first exchange
  bool scales_ = false, stream_stores_ = false;
  Bytes received_;
  Waiting waiting_;
  Status failure_;

 private:
  static constexpr std::size_t kStreamStoresFrom = 16 << 20;  // as Execution has it
};

}  // namespace shoal::engine
