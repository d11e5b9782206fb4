// SPDX-License-Identifier: Apache-2.0
// The last operations of one communicator, as one rank ran them: what, when, by which algorithm, how it ended. Writing costs some
// stores into one cache line and takes no lock; reading gives whole records. One writer for each operation at a time; any thread
// reads at any time.
#pragma once

#include <array>
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
  std::uint64_t lengths = 0;    // all_gather_v: a digest of the lengths
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

  FlightRecorder() : slots_(std::make_unique<std::array<Slot, kKept>>()) {}

  // A call, or a group's transfers, took its place in the order.
  void issue(const Operation& operation);
  void start(std::uint64_t ticket);
  void choose(std::uint64_t ticket, std::int16_t algorithm);
  // Small operations are not timed at their end unless asked: reading the clock costs some percent of them.
  void end(std::uint64_t ticket, bool ok, bool timed);

  // The operation with this ticket, if it is still kept.
  std::optional<Operation> find(std::uint64_t ticket) const;
  // The newest `most`, oldest first.
  std::vector<Operation> newest(std::size_t most) const;
  std::uint64_t last_ticket() const { return last_.load(std::memory_order_acquire); }

 private:
  // One cache line. `ticket` is 0 while the rest is rewritten; the other words are released, so that whoever sees a new one also
  // sees that 0.
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> ticket{0};
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<std::uint64_t> what{0};  // collective, type, op, numerics, root
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> lengths{0};
    std::atomic<std::uint64_t> started{0};
    std::atomic<std::uint64_t> ended{0};
    std::atomic<std::uint32_t> algorithm{0};  // + 1
    std::atomic<std::uint32_t> state{0};
  };
  static_assert(sizeof(Slot) == 64);

  Slot& slot(std::uint64_t ticket) { return (*slots_)[ticket % kKept]; }

  std::unique_ptr<std::array<Slot, kKept>> slots_;
  std::atomic<std::uint64_t> last_{0};
};

}  // namespace shoal::comm
