// SPDX-License-Identifier: Apache-2.0
#include "comm/flight_recorder.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace shoal::comm {
namespace {

// How an operation stands, and its algorithm's place in the table, in one word.
std::uint64_t outcome(Operation::State state, std::int16_t algorithm) {
  return static_cast<std::uint64_t>(state) << 32 | static_cast<std::uint32_t>(algorithm + 1);
}
std::int16_t algorithm_of(std::uint64_t outcome) {
  return static_cast<std::int16_t>(static_cast<std::int32_t>(outcome & 0xffffffff) - 1);
}

}  // namespace

std::string_view name_of(Operation::State state) {
  switch (state) {
    case Operation::State::issued: return "issued";
    case Operation::State::running: return "running";
    case Operation::State::done: return "done";
    case Operation::State::failed: return "failed";
  }
  return "";
}

std::string describe(const Operation& operation) {
  if (operation.is_transfers())
    return fmt::format("{} transfer{} of {} bytes", operation.root, operation.root == 1 ? "" : "s", operation.count);
  engine::Call call{.collective = operation.collective,
                    .count = {operation.count},
                    .type = operation.type,
                    .op = operation.op,
                    .root = {operation.root},
                    .numerics = operation.numerics,
                    .sequence = operation.sequence};
  std::string text = engine::describe(call);
  if (operation.details != 0)
    text += fmt::format(", {} {:016x}", operation.collective == plan::Collective::all_gather_v ? "lengths" : "compressed",
                        operation.details);
  return text;
}

FlightRecorder::FlightRecorder() {
  void* const memory = mmap(nullptr, kKept * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  slots_.reset(static_cast<Slot*>(memory));
}

void FlightRecorder::Unmap::operator()(Slot* slots) const { (void)munmap(slots, kKept * sizeof(Slot)); }

void FlightRecorder::issue(const Operation& operation, bool timed) {
  const std::uint64_t ticket = operation.ticket;
  const bool runs = operation.state == Operation::State::running;
  const auto release = std::memory_order_release;
  word(ticket, kTicket).store(0, std::memory_order_relaxed);
  word(ticket, kSequence).store(operation.sequence, release);
  word(ticket, kWhat)
      .store(static_cast<std::uint64_t>(operation.collective) | static_cast<std::uint64_t>(operation.type) << 8 |
                 static_cast<std::uint64_t>(operation.op) << 16 | static_cast<std::uint64_t>(operation.numerics) << 24 |
                 static_cast<std::uint64_t>(static_cast<std::uint32_t>(operation.root)) << 32,
             release);
  word(ticket, kCount).store(operation.count, release);
  word(ticket, kDetails).store(operation.details, release);
  word(ticket, kStarted).store(runs && is_timed(ticket, timed) ? ticks_now() : 0, release);
  word(ticket, kEnded).store(0, release);
  word(ticket, kOutcome).store(outcome(operation.state, operation.algorithm), release);
  word(ticket, kTicket).store(ticket, release);
  last_.store(ticket, release);
}

// Where a thousand others were issued meanwhile, the slot is no longer this one's.
bool FlightRecorder::keeps(std::uint64_t ticket) const { return word(ticket, kTicket).load(std::memory_order_relaxed) == ticket; }

void FlightRecorder::start(std::uint64_t ticket, bool timed) {
  if (!keeps(ticket)) return;
  if (is_timed(ticket, timed)) word(ticket, kStarted).store(ticks_now(), std::memory_order_release);
  word(ticket, kOutcome).store(outcome(Operation::State::running, -1), std::memory_order_release);
}

void FlightRecorder::stamp(std::uint64_t ticket) {
  if (keeps(ticket) && word(ticket, kStarted).load(std::memory_order_relaxed) == 0)
    word(ticket, kStarted).store(ticks_now(), std::memory_order_release);
}

void FlightRecorder::choose(std::uint64_t ticket, std::int16_t algorithm) {
  if (keeps(ticket)) word(ticket, kOutcome).store(outcome(Operation::State::running, algorithm), std::memory_order_release);
}

void FlightRecorder::end(std::uint64_t ticket, bool ok, bool timed) {
  if (!keeps(ticket)) return;
  if (timed || !ok) word(ticket, kEnded).store(ticks_now(), std::memory_order_release);
  const std::int16_t algorithm = algorithm_of(word(ticket, kOutcome).load(std::memory_order_relaxed));
  word(ticket, kOutcome)
      .store(outcome(ok ? Operation::State::done : Operation::State::failed, algorithm), std::memory_order_release);
}

// Nearly when an operation started that follows the timed one closely, being small as all between them; 0: unknown.
std::uint64_t FlightRecorder::last_time_before(std::uint64_t ticket) const {
  const auto acquire = std::memory_order_acquire;
  for (std::uint64_t back = 1; back < kTimedEvery && back < ticket; ++back) {
    const std::uint64_t before = ticket - back;
    if (word(before, kTicket).load(acquire) != before) return 0;
    const std::uint64_t time = std::max(word(before, kStarted).load(acquire), word(before, kEnded).load(acquire));
    if (time != 0) return time;
  }
  return 0;
}

std::optional<Operation> FlightRecorder::find(std::uint64_t ticket) const {
  const auto acquire = std::memory_order_acquire;
  if (ticket == 0 || word(ticket, kTicket).load(acquire) != ticket) return std::nullopt;
  Operation found{.ticket = ticket, .sequence = word(ticket, kSequence).load(acquire)};
  const std::uint64_t what = word(ticket, kWhat).load(acquire);
  found.collective = static_cast<plan::Collective>(what & 0xff);
  found.type = static_cast<DataType>(what >> 8 & 0xff);
  found.op = static_cast<ReduceOp>(what >> 16 & 0xff);
  found.numerics = static_cast<engine::Numerics>(what >> 24 & 0xff);
  found.root = static_cast<std::int32_t>(what >> 32);
  found.count = word(ticket, kCount).load(acquire);
  found.details = word(ticket, kDetails).load(acquire);
  found.started = word(ticket, kStarted).load(acquire);
  found.ended = word(ticket, kEnded).load(acquire);
  const std::uint64_t ending = word(ticket, kOutcome).load(acquire);
  found.algorithm = algorithm_of(ending);
  found.state = static_cast<Operation::State>(ending >> 32);
  if (found.started == 0 && found.state != Operation::State::issued) found.started = last_time_before(ticket);
  if (!keeps(ticket)) return std::nullopt;  // it was rewritten meanwhile
  return found;
}

std::vector<Operation> FlightRecorder::newest(std::size_t most) const {
  std::vector<Operation> found;
  const std::uint64_t last = last_ticket();
  const std::uint64_t first = last - std::min<std::uint64_t>(last, std::min(most, kKept));
  for (std::uint64_t ticket = first + 1; ticket <= last; ++ticket)
    if (std::optional<Operation> one = find(ticket)) found.push_back(*one);
  return found;
}

}  // namespace shoal::comm
