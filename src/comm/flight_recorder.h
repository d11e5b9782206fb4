// SPDX-License-Identifier: Apache-2.0
// The last operations of one communicator, as one rank ran them: what, when, by which algorithm, how it ended. Writing costs some
// stores into one cache line and takes no lock; reading gives whole records. One writer for each operation at a time; any thread
// reads at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ticks.h"
#include "engine/call.h"

namespace shoal::comm {

// One operation: a collective, or the transfers of a group.
struct Operation {
  enum class State : std::uint8_t { issued, running, done, failed };

  std::uint64_t ticket = 0;    // place in this rank's order: 1, 2, ...
  std::uint64_t sequence = 0;  // among the communicator's collectives; 0: transfers
  plan::Collective collective = plan::Collective::all_reduce;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  engine::Numerics numerics = engine::Numerics::fast;
  State state = State::issued;
  std::int16_t algorithm = -1;  // place in the table of algorithms; -1: not chosen yet
  std::int32_t root = 0;        // of transfers: how many they are
  std::uint64_t count = 0;      // elements, as engine::Call; of transfers: bytes
  std::uint64_t details = 0;    // what else all ranks must agree on, see engine::details_digest
  std::uint64_t started = 0;    // ticks; 0: not yet
  std::uint64_t ended = 0;      // ticks; 0: not yet, or (if it is over) not measured, for it was small
  bool is_transfers() const { return sequence == 0; }
  std::uint64_t bytes() const { return is_transfers() ? count : count * element_bytes(type); }
};

std::string_view name_of(Operation::State state);
// "all_reduce #88 of 1000 float32, sum"; "2 transfers of 80 bytes". The same on all ranks exactly if they make the same call.
std::string describe(const Operation& operation);

class FlightRecorder {
 public:
  static constexpr std::size_t kKept = 1024;

  // std::bad_alloc if there is no memory.
  FlightRecorder();

  // A call, or a group's transfers, took its place in the order; if it is running already, this is its start, too.
  void issue(const Operation& operation, bool timed = false);
  // Of small operations every 16th is timed, unless asked: find() gives the others the time of the last one before.
  void start(std::uint64_t ticket, bool timed);
  // It is slow: if it has no time of its own it gets the present one.
  void stamp(std::uint64_t ticket);
  void choose(std::uint64_t ticket, std::int16_t algorithm);
  // Small operations are not timed at their end unless asked: reading the clock costs some percent of them.
  void end(std::uint64_t ticket, bool ok, bool timed);

  // The operation with this ticket, if it is still kept.
  std::optional<Operation> find(std::uint64_t ticket) const;
  // The newest `most`, oldest first.
  std::vector<Operation> newest(std::size_t most) const;
  std::uint64_t last_ticket() const { return last_.load(std::memory_order_acquire); }

 private:
  // One cache line of words that are only touched as atomics. The ticket is 0 while the rest is rewritten; the other words are
  // released, so that whoever sees a new one also sees that 0.
  enum Word : std::size_t { kTicket, kSequence, kWhat, kCount, kDetails, kStarted, kEnded, kOutcome, kWords };
  struct alignas(64) Slot {
    std::uint64_t words[kWords];
  };
  static_assert(sizeof(Slot) == 64);
  struct Unmap {
    void operator()(Slot* slots) const;
  };

  static constexpr std::uint64_t kTimedEvery = 16;

  static bool is_timed(std::uint64_t ticket, bool asked) { return asked || ticket % kTimedEvery == 1; }
  bool keeps(std::uint64_t ticket) const;
  std::uint64_t last_time_before(std::uint64_t ticket) const;
  std::atomic_ref<std::uint64_t> word(std::uint64_t ticket, Word which) const {
    return std::atomic_ref(slots_.get()[ticket % kKept].words[which]);
  }

  // Pages of their own, which cost nothing until they are written, and go back as a whole.
  std::unique_ptr<Slot[], Unmap> slots_;
  std::atomic<std::uint64_t> last_{0};
};

}  // namespace shoal::comm
