// SPDX-License-Identifier: Apache-2.0
#include "comm/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::comm {

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
  if (operation.lengths != 0) text += fmt::format(", lengths {:016x}", operation.lengths);
  return text;
}

void FlightRecorder::issue(const Operation& operation) {
  Slot& to = slot(operation.ticket);
  to.ticket.store(0, std::memory_order_relaxed);
  const auto release = std::memory_order_release;
  to.sequence.store(operation.sequence, release);
  to.what.store(static_cast<std::uint64_t>(operation.collective) | static_cast<std::uint64_t>(operation.type) << 8 |
                    static_cast<std::uint64_t>(operation.op) << 16 | static_cast<std::uint64_t>(operation.numerics) << 24 |
                    static_cast<std::uint64_t>(static_cast<std::uint32_t>(operation.root)) << 32,
                release);
  to.count.store(operation.count, release);
  to.lengths.store(operation.lengths, release);
  to.started.store(0, release);
  to.ended.store(0, release);
  to.algorithm.store(0, release);
  to.state.store(static_cast<std::uint32_t>(Operation::State::issued), release);
  to.ticket.store(operation.ticket, release);
  last_.store(operation.ticket, release);
}

void FlightRecorder::start(std::uint64_t ticket) {
  Slot& to = slot(ticket);
  if (to.ticket.load(std::memory_order_relaxed) != ticket) return;  // a thousand others were issued meanwhile
  to.started.store(ticks_now(), std::memory_order_release);
  to.state.store(static_cast<std::uint32_t>(Operation::State::running), std::memory_order_release);
}

void FlightRecorder::choose(std::uint64_t ticket, std::int16_t algorithm) {
  Slot& to = slot(ticket);
  if (to.ticket.load(std::memory_order_relaxed) == ticket)
    to.algorithm.store(static_cast<std::uint32_t>(algorithm + 1), std::memory_order_relaxed);
}

void FlightRecorder::end(std::uint64_t ticket, bool ok, bool timed) {
  Slot& to = slot(ticket);
  if (to.ticket.load(std::memory_order_relaxed) != ticket) return;
  if (timed || !ok) to.ended.store(ticks_now(), std::memory_order_release);
  to.state.store(static_cast<std::uint32_t>(ok ? Operation::State::done : Operation::State::failed), std::memory_order_release);
}

std::optional<Operation> FlightRecorder::find(std::uint64_t ticket) const {
  if (ticket == 0) return std::nullopt;
  const Slot& from = (*slots_)[ticket % kKept];
  const auto acquire = std::memory_order_acquire;
  if (from.ticket.load(acquire) != ticket) return std::nullopt;
  Operation found{.ticket = ticket, .sequence = from.sequence.load(acquire)};
  const std::uint64_t what = from.what.load(acquire);
  found.collective = static_cast<plan::Collective>(what & 0xff);
  found.type = static_cast<DataType>(what >> 8 & 0xff);
  found.op = static_cast<ReduceOp>(what >> 16 & 0xff);
  found.numerics = static_cast<engine::Numerics>(what >> 24 & 0xff);
  found.root = static_cast<std::int32_t>(what >> 32);
  found.count = from.count.load(acquire);
  found.lengths = from.lengths.load(acquire);
  found.started = from.started.load(acquire);
  found.ended = from.ended.load(acquire);
  found.algorithm = static_cast<std::int16_t>(static_cast<std::int32_t>(from.algorithm.load(acquire)) - 1);
  found.state = static_cast<Operation::State>(from.state.load(acquire));
  if (from.ticket.load(std::memory_order_relaxed) != ticket) return std::nullopt;  // it was rewritten meanwhile
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
