// SPDX-License-Identifier: Apache-2.0
// A call whose ranks read and write each other's buffers in place, where all buffers that it takes are of memory which others can
// map (device::shareable). Every rank offers its own on its board; if all do, each does its part of the work on all ranks'
// memory, and nobody returns before all have. If one does not, or cannot map another's, all know, and the call is run in another
// way.
//
// Reductions are cut into a chunk a rank, which that rank adds, in the order of ranks, and writes to everybody who wants it. What
// is moved is read where it lies.
#pragma once

#include <array>
#include <bit>
#include <vector>

#include "device/host_memory.h"
#include "engine/foreign_memory.h"
#include "engine/round_call.h"

namespace shoal::engine {

class Mapped final : public RoundCall {
 public:
  // `pids`: of all ranks.
  Mapped(World world, std::vector<pid_t> pids);

  // Whether the next call, this one, begins here: agreed. Short calls whose like was declined a moment ago do not ask again.
  bool takes(const Call& call);

  void start(const Call& call, const Setting& setting) override;
  bool advance() override;
  bool done() const override { return state_ == State::done || state_ == State::declined; }
  // Done, but nothing has been moved.
  bool declined() const { return state_ == State::declined; }
  std::string progress() const override { return ", over mapped memory"; }

 private:
  enum class State : std::uint8_t { offer, read_offers, judge, read_judgements, work, read_ends, done, declined };
  // As it is shown.
  struct Offer {
    OfferedPart input, output;
    std::uint64_t frees = 0;
    std::uint32_t complete = 0;  // all that others need of this rank is here
    std::uint32_t is_new = 0;    // something here has never been offered
  };
  struct Buffers {
    std::byte* input = nullptr;
    std::byte* output = nullptr;
  };

  bool step();
  Offer make_offer();
  bool describe_part(const void* start, std::size_t bytes, OfferedPart& part, bool& is_new);
  void take_offer(std::int32_t rank, const Offer& offer);
  void work();
  void add(std::size_t first, std::size_t elements, std::size_t block);
  std::size_t input_bytes(std::int32_t rank) const;
  std::size_t output_bytes(std::int32_t rank) const;

  static constexpr std::size_t kShort = 64 << 10;  // bytes of a block from which on asking costs nothing beside the call
  static constexpr std::uint8_t kHeld = 15;        // short calls that do not ask
  static constexpr std::size_t kAdded = 16 << 10;  // bytes of a sum that stay in the first-level cache

  std::vector<pid_t> pids_;
  ForeignMemory foreign_;
  std::vector<Buffers> buffers_;                           // [world]
  std::vector<std::uint64_t> known_;                       // own blocks that all ranks have mapped
  std::uint64_t frees_ = 0;                                // when known_ was true
  alignas(64) std::array<std::byte, kAdded> partial_sum_;  // where more than two are added
  State state_ = State::done;
  std::vector<std::uint64_t> offered_;  // own blocks that this call offers
  bool all_offer_ = true, all_mapped_ = true, any_new_ = false;
  // Calls that do not ask, by collective and the bits of a block's length.
  std::array<std::array<std::uint8_t, std::bit_width(kShort)>, static_cast<std::size_t>(plan::Collective::scatter) + 1> held_{};
  std::uint8_t* held_of_call_ = nullptr;  // null: it is long
  bool given_up_ = false;                 // once somebody could not map, nobody tries again: agreed
};

}  // namespace shoal::engine
