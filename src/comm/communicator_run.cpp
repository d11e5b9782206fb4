// SPDX-License-Identifier: Apache-2.0
// How a communicator runs what it is asked for: calls and exchanges get their place, their plan, and their turn.
#include <algorithm>
#include <bit>
#include <new>

#include "comm/board_limits.h"
#include "comm/communicator.h"
#include "plan/placed.h"

namespace shoal::comm {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kTimedBytes = 4096;  // calls of more are long enough for a look at the clock
// Over boards: as long as processors copy and add while caches hold it; where ranks take turns on one, as few turns as can be.
constexpr Bytes kPiece{64 << 10}, kCrowdedPiece{engine::Boards::kSlotBytes};
// From here on reading others' buffers where they lie is worth two exchanges.
constexpr Bytes kMappedFrom{4 << 10}, kCrowdedMappedFrom{16 << 10};

}  // namespace

// The call's place in the order.
void Communicator::number(engine::Call& call) {
  call.ticket = issued_.load(std::memory_order_relaxed) + 1;
  issued_.store(call.ticket, std::memory_order_relaxed);
  call.sequence = ++collectives_;
}

Operation Communicator::operation_of(const engine::Call& call) {
  return {.ticket = call.ticket,
          .sequence = call.sequence,
          .collective = call.collective,
          .type = call.type,
          .op = call.op,
          .numerics = call.numerics,
          .root = call.root.value,
          .count = call.collective == plan::Collective::all_to_all_v ? 0 : call.count.value,
          .details = engine::details_digest(call)};
}

void Communicator::issue(engine::Call& call) {
  number(call);
  if (wire_format_ != nullptr && call.collective != plan::Collective::barrier && call.type == DataType::float32 &&
      call.composition == nullptr && call.numerics != engine::Numerics::exact)
    call.codec = wire_format_;
  recorder_.issue(operation_of(call));
  if (call.collective != plan::Collective::all_to_all_v) return;
  const std::lock_guard lock(noted_mutex_);
  lengths_of_ = call.sequence;
  lengths_ = call.uneven;
}

Status Communicator::check(const Exchange& exchange) const {
  // What this rank sends to itself, in order, is what it receives from itself.
  std::vector<const engine::Transfer*> sent, received;
  for (const engine::Transfer& each : exchange.transfers)
    if (each.peer == rank()) (each.sending ? sent : received).push_back(&each);
  for (std::size_t i = 0; i < std::max(sent.size(), received.size()); ++i)
    if (i >= sent.size() || i >= received.size() || sent[i]->size != received[i]->size)
      return fail(
          Code::invalid_usage,
          "rank {} sends to and receives from itself: {} sends and {} receives in this group, the {}. of {} and {} bytes; "
          "they must pair up in order with the same number of bytes",
          rank().value, sent.size(), received.size(), i + 1, i < sent.size() ? sent[i]->size.value : 0,
          i < received.size() ? received[i]->size.value : 0);
  return {};
}

void Communicator::issue(Exchange& exchange) {
  for (engine::Transfer& each : exchange.transfers)
    each.sequence = ++(each.sending ? sends_ : receives_)[static_cast<std::size_t>(each.peer.value)];
  exchange.ticket = issued_.load(std::memory_order_relaxed) + 1;
  issued_.store(exchange.ticket, std::memory_order_relaxed);
  std::uint64_t bytes = 0;
  const std::lock_guard lock(noted_mutex_);
  for (const engine::Transfer& each : exchange.transfers) {
    bytes += each.size.value;
    transfers_[transfers_issued_++ % kKeptTransfers] = {each.peer.value, each.sending, each.sequence, each.size.value, false};
  }
  recorder_.issue({.ticket = exchange.ticket, .root = static_cast<std::int32_t>(exchange.transfers.size()), .count = bytes});
}

Status Communicator::perform(engine::Call& call) {
  const bool plain = trace_ == nullptr && wire_format_ == nullptr && call.uneven == nullptr && call.composition == nullptr &&
                     call.numerics != engine::Numerics::exact;
  if (!plain || !is_turn_of(issued_.load(std::memory_order_relaxed) + 1) || !is_well()) [[unlikely]] {
    issue(call);
    return drive(begin(call, /*beside_compute=*/false));
  }
  number(call);
  running_ = call.sequence;
  performed_ = 0;
  const bool timed = size_of(call.count, call.type).value > kTimedBytes;
  Status started;
  try {
    started = start(call);
    if (started.is_ok() && finish_at_once(call, timed)) {
      if (execution_->can_start_again() && !prepared_->tries_pulled) performed_ = call.ticket;
      return {};
    }
  } catch (const std::bad_alloc&) {
    started = fail(Code::system_error, "rank {}: out of memory", rank().value);
  }
  if (!started.is_ok()) recorder_.issue(operation_of(call));  // it may have been noted or not
  engine::Driven driven = driven_by(alone_);
  driven.finished = !started.is_ok();
  driven.result = std::move(started);
  return drive(std::move(driven));
}

// If this call was the last to be performed, and nothing was issued since, it is its turn. No memory is asked for.
Status Communicator::perform_again(engine::Call& call) {
  const bool was_last = performed_ == call.ticket && performed_ == issued_.load(std::memory_order_relaxed);
  if (!was_last || performed_ == 0 || !is_well()) return perform(call);
  // Whether buffers can be mapped is asked anew now and then, by all ranks alike.
  if (prepared_->tries_mapped && execution_->takes_to_mapping(call)) return perform(call);
  number(call);
  running_ = call.sequence;
  execution_->start_again(call.ticket, call.sequence);
  const bool timed = size_of(call.count, call.type).value > kTimedBytes;
  if (finish_at_once(call, timed)) [[likely]] {
    performed_ = call.ticket;
    return {};
  }
  performed_ = 0;
  return drive(driven_by(alone_));
}

// What the other ranks wait for comes first, and what is noted of the call while they get there. False: it takes longer.
bool Communicator::finish_at_once(const engine::Call& call, bool timed) {
  const bool over_boards = execution_->on_boards();
  if (over_boards) execution_->advance();
  Operation running = operation_of(call);
  running.state = Operation::State::running;
  running.algorithm = prepared_->place;
  recorder_.issue(running, timed);
  for (int look = over_boards ? at_once_ : 1; !execution_->done(); --look) {
    if (look == 0) return false;
    execution_->advance();
  }
  if (prepared_->tries_pulled) execution_->ended();
  recorder_.end(call.ticket, true, timed);
  finished_.store(running_, std::memory_order_relaxed);
  pass_turn();
  return true;
}

engine::Driven Communicator::driven_by(const engine::WaitPolicy& policy) {
  return {.execution = execution_.get(), .doorbell = endpoint_.doorbell, .watch = this, .rank = rank(), .policy = policy};
}

engine::Driven Communicator::wait_to_begin(std::uint64_t ticket, bool beside_compute, bool timed) {
  engine::Driven driven = driven_by(beside_compute ? beside_compute_ : alone_);
  driven.result = wait_for_turn(ticket);
  driven.finished = !driven.result.is_ok();
  recorder_.start(ticket, timed || trace_ != nullptr);
  if (driven.finished) driven.watch = nullptr;  // it never began, perhaps not even had its turn
  return driven;
}

engine::Driven Communicator::begin(const engine::Call& call, bool beside_compute) {
  engine::Driven driven = wait_to_begin(call.ticket, beside_compute, size_of(call.count, call.type).value > kTimedBytes);
  if (driven.finished) return driven;
  running_ = call.sequence;
  without_bad_alloc(driven, [&] {
    const bool exact = call.numerics == engine::Numerics::exact && is_inexact(call);
    if (call.composition != nullptr || exact) {
      composed_ = call;
      if (call.composition == nullptr) composed_.composition = std::make_shared<ExactCall>(call, world_, rank());
      driven.finished = true;  // but for what comes next
      next(driven);
    } else {
      driven.result = start(call);
      driven.finished = !driven.result.is_ok();
      if (!driven.finished) recorder_.choose(call.ticket, prepared_->place);
    }
  });
  return driven;
}

bool Communicator::next(engine::Driven& ended) {
  if (ended.watch == nullptr || composed_.composition == nullptr) return false;
  if (ended.result.is_ok()) {
    if (moving_) composed_.composition->moved(execution_->traffic());
    Result<std::optional<engine::Call>> call = composed_.composition->next();
    ended.result = call.status();
    if (call.is_ok() && call->has_value()) {
      // To the other ranks each of its collectives is the whole call, and more.
      (*call)->ticket = composed_.ticket;
      (*call)->sequence = composed_.sequence;
      (*call)->variant = composed_.variant;
      ended.result = start(**call);
      ended.finished = !ended.result.is_ok();
      moving_ = !ended.finished;
      if (moving_) recorder_.choose(composed_.ticket, prepared_->place);
      if (moving_) return true;
    }
  }
  moving_ = false;
  composed_.composition.reset();
  return false;
}

engine::Driven Communicator::begin(Exchange& exchange, bool beside_compute) {
  engine::Driven driven = wait_to_begin(exchange.ticket, beside_compute, true);
  if (driven.finished) return driven;
  running_ = 0;
  without_bad_alloc(driven, [&] { start(exchange); });
  return driven;
}

void Communicator::start(const Exchange& exchange) {
  std::vector<engine::Transfer> to_others;
  std::vector<const engine::Transfer*> sent, received;
  for (const engine::Transfer& each : exchange.transfers) {
    if (each.peer != rank())
      to_others.push_back(each);
    else
      (each.sending ? sent : received).push_back(&each);
  }
  for (std::size_t i = 0; i < sent.size(); ++i)
    if (sent[i]->memory != received[i]->memory) device::copy({received[i]->memory}, {sent[i]->memory, sent[i]->size.value});
  execution_->start(std::move(to_others), endpoint_.max_message);
}

Status Communicator::prepare(const engine::Call& call) {
  Result<Choice> choice = tuner_->choose(call);
  if (!choice.is_ok()) return choice.status();
  const Planned& planned = plan_for(*choice->algorithm, call.root);
  const bool tries_mapped =
      situation_.mappable && world_.value > 1 && !settings_.mapped_disable && !settings_.algorithms.restricts(call.collective) &&
      size_of({std::bit_floor(call.count.value)}, call.type) >= (situation_.crowded ? kCrowdedMappedFrom : kMappedFrom);
  const std::optional<Pulling> pulling = pull_limit(call.collective, situation_, settings_);
  const bool tries_pulled = pulling && !settings_.algorithms.restricts(call.collective) &&
                            size_of({std::bit_floor(call.count.value)}, call.type) >= pulling->from;
  if (planned.plan.boards != plan::Boards::unused || tries_mapped || tries_pulled) {
    if (Status opened = board_->open(); !opened.is_ok()) return opened;
    const Bytes longest{(std::size_t{1} << tuner_->length_class(call)) - 1};  // that is prepared for here
    if (tries_mapped || shown_bytes(planned.plan, longest) > Bytes{engine::Boards::kInline})
      if (Status there = board_->fill(); !there.is_ok()) return there;
  }
  prepared_ = &kept_[std::exchange(oldest_, (oldest_ + 1) % kKeptPrepared)];
  *prepared_ = {.planned = &planned,
                .collective = call.collective,
                .numerics = call.numerics,
                .root = call.root,
                .length_class = tuner_->length_class(call),
                .codec = call.codec,
                .tuning = choice->tuning,
                .tries_mapped = tries_mapped,
                .tries_pulled = tries_pulled,
                .always_pulls = tries_pulled && pulling->always,
                .place = static_cast<std::int16_t>(choice->algorithm - algorithms::all().data())};
  return {};
}

// Most calls are followed by their like, or by another one of the few kinds that go by turns.
Status Communicator::prepare_for(const engine::Call& call) {
  const int length = tuner_->length_class(call);
  if (prepared_->is_for(call, length)) [[likely]]
    return {};
  const auto known = std::ranges::find_if(kept_, [&](const Prepared& each) { return each.is_for(call, length); });
  if (known == kept_.end()) return prepare(call);
  prepared_ = &*known;
  return {};
}

Status Communicator::start(const engine::Call& call) {
  if (Status ready = prepare_for(call); !ready.is_ok()) return ready;
  if (prepared_->tries_mapped && execution_->takes_to_mapping(call))
    execution_->start_mapped(call, board_->memory(), [this](const engine::Call& like) { start_private(like); });
  else
    start_private(call);
  return {};
}

// Of memory that cannot be mapped.
void Communicator::start_private(const engine::Call& call) {
  if (prepared_->tries_pulled && execution_->takes_to_pulling(call, prepared_->always_pulls))
    execution_->start_pulled(call, board_->memory(), [this](const engine::Call& like) { start_prepared(like); });
  else
    start_prepared(call);
}

void Communicator::start_prepared(const engine::Call& call) {
  const plan::Plan& plan = prepared_->planned->plan;
  const engine::Tuning& tuning = prepared_->tuning;
  if (plan.boards != plan::Boards::unused)
    execution_->start_on_boards(call, plan.boards, board_->memory(), situation_.crowded ? kCrowdedPiece : kPiece);
  else
    execution_->start(call, plan, engine::part_limit(prepared_->planned->widest, tuning.slice), tuning.in_flight);
}

Status Communicator::conclude(engine::Driven& driven) {
  Status result = driven.result.is_ok() ? Status() : note_failure(driven.result);
  const std::uint64_t ticket = completed_.load(std::memory_order_relaxed) + 1;
  if (driven.watch != nullptr) {    // it had its turn: after abort others may not, and touch nothing of this
    composed_.composition.reset();  // of a call that ended for want of memory
    moving_ = false;
    if (result.is_ok() && prepared_->tries_pulled) execution_->ended();
    recorder_.end(ticket, result.is_ok(), trace_ != nullptr || driven.execution->is_long());
    if (trace_ != nullptr)
      if (const std::optional<Operation> ended = recorder_.find(ticket)) trace_->add(told(*ended, TickScale::now()));
    if (running_ != 0 && result.is_ok()) finished_.store(running_, std::memory_order_relaxed);
  }
  pass_turn();
  return result;
}

void Communicator::pass_turn() {
  completed_.fetch_add(1, std::memory_order_release);
  if (queueing_.load() == 0) return;
  const std::lock_guard lock(turn_mutex_);
  turn_.notify_all();
}

Status Communicator::wait_for_turn(std::uint64_t ticket) {
  if (!is_turn_of(ticket)) [[unlikely]] {
    std::unique_lock lock(turn_mutex_);
    queueing_.fetch_add(1);
    // Every call before this one ends by itself, at the latest by its own deadline. But one that waits on a stream for what
    // another communicator does there may not have begun: after abort, turns count no more, since nobody does anything in them.
    while (!is_turn_of(ticket) && !aborted_.load()) turn_.wait_for(lock, 10ms);
    queueing_.fetch_sub(1);
  }
  return is_well() ? Status() : failure();
}

Status Communicator::drain() {
  std::unique_lock lock(turn_mutex_);
  queueing_.fetch_add(1);
  while (completed_.load(std::memory_order_acquire) != issued_ && !aborted_.load()) turn_.wait_for(lock, 10ms);
  queueing_.fetch_sub(1);
  lock.unlock();
  return failure();
}

const Communicator::Planned& Communicator::plan_for(const algorithms::Algorithm& algorithm, Rank root) {
  auto& slots = plans_[static_cast<std::size_t>(&algorithm - algorithms::all().data())];
  const std::size_t at = plan::has_root(algorithm.collective) ? static_cast<std::size_t>(root.value) : 0;
  if (slots.size() <= at) slots.resize(at + 1);
  if (slots[at] == nullptr) {
    const plan::Request request{
        .collective = algorithm.collective, .world = world_, .rank = rank(), .root = root, .group = situation_.close()};
    const auto build = [&](const plan::Request& each) { return algorithm.build(each); };
    slots[at] =
        std::make_unique<Planned>(Planned{plan::build_placed(build, request, situation_.order.ranks), algorithm.widest(request)});
  }
  return *slots[at];
}

}  // namespace shoal::comm
