// SPDX-License-Identifier: Apache-2.0
// What a communicator says of itself: where it stands, to the root that asks, and to people, as a dump.
#include <algorithm>

#include "comm/communicator.h"
#include "core/log.h"

namespace shoal::comm {

DumpedOperation told(const Operation& operation, const TickScale& clock) {
  const auto time = [&clock](std::uint64_t ticks) { return ticks == 0 ? 0 : clock.system_ns(ticks); };
  const auto algorithms = algorithms::all();
  const auto chosen = static_cast<std::size_t>(operation.algorithm);
  return {.ticket = operation.ticket,
          .sequence = operation.sequence,
          .call = describe(operation),
          .bytes = operation.bytes(),
          .algorithm = operation.algorithm < 0 ? std::string() : std::string(algorithms[chosen].name),
          .state = std::string(name_of(operation.state)),
          .started_ns = time(operation.started),
          .ended_ns = time(operation.ended)};
}

void Communicator::note(const engine::Standing& standing, std::chrono::nanoseconds unmoved) {
  const std::lock_guard lock(noted_mutex_);
  recorder_.stamp(completed_.load(std::memory_order_relaxed) + 1);
  noted_ = {standing, completed_.load(std::memory_order_relaxed) + 1, std::chrono::steady_clock::now() - unmoved};
}

void Communicator::raise(engine::Trouble trouble, const Status& own) {
  constexpr Alarm kAlarms[] = {Alarm::slow, Alarm::mismatch, Alarm::broken, Alarm::timeout};
  agreement_.control->raise_alarm(kAlarms[static_cast<std::size_t>(trouble)], running_, own);
}

Dump Communicator::dump() const {
  Dump dump{.who = endpoint_.self,
            .world = world_.value,
            .communicator = endpoint_.communicator,
            .written_ns = 0,
            .failure = {},
            .report = report(0),
            .operations = {}};
  const TickScale clock = TickScale::now();
  dump.written_ns = clock.system_ns(ticks_now());
  for (const Operation& each : recorder_.newest(FlightRecorder::kKept)) dump.operations.push_back(told(each, clock));
  return dump;
}

// Under failure_mutex_, or on the watcher's thread.
void Communicator::write_dump() const {
  if (dump_path_.empty()) return;
  Dump picture = dump();
  if (failed_.load(std::memory_order_acquire)) picture.failure = failure_.text();
  if (const Status written = comm::write_dump(dump_path_, picture); !written.is_ok())
    log::warn(rank().value, "SHOAL_DUMP: {}", written.text());
}

// On the watcher's thread, or whoever else reads the control plane.
Report Communicator::report(std::uint64_t sequence) const {
  Report report;
  std::vector<Operation> operations = recorder_.newest(FlightRecorder::kKept);
  std::erase_if(operations, [](const Operation& each) { return each.state == Operation::State::issued; });
  const TickScale clock = TickScale::now();
  const std::size_t begin = operations.size() - std::min(operations.size(), Report::kMaxCalls - 1);
  for (std::size_t i = 0; i < operations.size(); ++i)
    if (const Operation& each = operations[i]; !each.is_transfers() && (i >= begin || each.sequence == sequence))
      report.calls.push_back({each.sequence, describe(each)});
  if (operations.empty()) return report;
  const std::lock_guard lock(noted_mutex_);
  for (std::size_t i = 0; i < std::min(transfers_issued_, kKeptTransfers); ++i) report.transfers.push_back(transfers_[i]);
  if (lengths_ != nullptr) {
    report.lengths_of = lengths_of_;
    report.sends.assign(lengths_->input.counts.begin(), lengths_->input.counts.end());
    report.receives.assign(lengths_->output.counts.begin(), lengths_->output.counts.end());
  }
  const Operation& last = operations.back();
  report.inside = last.state == Operation::State::running;
  report.finished = finished_.load(std::memory_order_relaxed);
  report.since_ms = static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, clock.age_ns(last.ended != 0 ? last.ended : last.started) / 1'000'000));
  if (!report.inside) return report;
  report.doing = describe(last);
  if (noted_.ticket != last.ticket) return report;
  const engine::Standing& standing = noted_.standing;
  report.since_ms = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - noted_.last_move).count());
  report.doing = standing.doing;
  report.waits_for = standing.waits_for.value;
  for (const engine::Transfer& each : standing.transfers)
    report.transfers.insert(report.transfers.begin(), {each.peer.value, each.sending, each.sequence, each.size.value, true});
  return report;
}

}  // namespace shoal::comm
