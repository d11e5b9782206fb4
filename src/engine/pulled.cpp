// SPDX-License-Identifier: Apache-2.0
#include "engine/pulled.h"

#include <bit>
#include <chrono>

namespace shoal::engine {

using plan::Collective;

namespace {

std::uint64_t now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace

Pulled::Pulled(World world, std::vector<pid_t> pids) : reader_(std::move(pids)), offers_(static_cast<std::size_t>(world.value)) {}

// Factors of pre-multiplied sums are their rank's own.
bool Pulled::takes(const Call& call, bool always) {
  choosing_ = nullptr;
  chosen_at_ = 0;
  if (given_up_ || call.collective > Collective::scatter || call.op == ReduceOp::premul_sum || call.codec != nullptr ||
      call.composition != nullptr || call.numerics != Numerics::fast || call.count.value == 0)
    return false;
  if (plan::is_reduction(call.collective) && partial_sum_ == nullptr) {
    read_ = std::make_unique<std::byte[]>(kAdded);  // touched: what it costs to have them shall not be measured
    partial_sum_ = std::make_unique<std::byte[]>(kAdded);
  }
  if (always) return true;
  choosing_ = &quickest_of(call);
  if (choosing_->is_asked()) return true;
  chosen_at_ = now();
  return false;
}

Quickest& Pulled::quickest_of(const Call& call) {
  const auto length_class = static_cast<int>(std::bit_width(call.count.value));
  for (Choice& each : choices_)
    if (each.collective == call.collective && each.length_class == length_class && each.type == call.type) return *each.quickest;
  choices_.push_back({call.collective, length_class, call.type, std::make_unique<Quickest>()});
  return *choices_.back().quickest;
}

void Pulled::start(const Call& call, const Setting& setting) {
  begin_rounds(call, setting);
  state_ = proved_ ? State::offer : State::prove;
  all_read_ = true;
  away_ = 0;
  position_ = 0;
}

void Pulled::ended_elsewhere() {
  if (chosen_at_ != 0) choosing_->took(Quickest::Way::planned, now() - chosen_at_);
  chosen_at_ = 0;
}

void Pulled::end() {
  state_ = State::done;
  if (chosen_at_ != 0) choosing_->took(Quickest::Way::pulled, now() - chosen_at_);
  chosen_at_ = 0;
}

bool Pulled::advance() {
  if (done() || !is_open()) return false;
  return step();
}

bool Pulled::step() {
  switch (state_) {
    case State::prove:
      if (!show(reader_.own_proof())) return false;
      state_ = State::read_proofs;
      return true;
    case State::read_proofs:
      if (!read_all_of<ForeignReader::Proof>(
              [this](std::int32_t rank, const ForeignReader::Proof& proof) { all_read_ &= reader_.proves({rank}, proof); }))
        return false;
      state_ = State::judge;
      return true;
    case State::judge:
      if (!show(std::uint64_t{all_read_})) return false;
      state_ = State::read_judgements;
      return true;
    case State::read_judgements:
      if (!read_all_of<std::uint64_t>([this](std::int32_t, std::uint64_t good) { all_read_ &= good != 0; })) return false;
      proved_ = all_read_;
      given_up_ = !all_read_;
      state_ = proved_ ? State::offer : State::declined;
      return true;
    case State::offer: {
      auto* const input = static_cast<const std::byte*>(call_.input);
      auto* const output = static_cast<const std::byte*>(call_.output);
      const Quickest::Figures figures = choosing_ != nullptr ? choosing_->told() : Quickest::Figures{};
      if (!show(Offer{input, output, figures, std::uint64_t{input == output}})) return false;
      state_ = State::read_offers;
      return true;
    }
    case State::read_offers:
      if (!read_all_of<Offer>([this](std::int32_t rank, const Offer& offer) { offers_[static_cast<std::size_t>(rank)] = offer; }))
        return false;
      take_offers();
      return true;
    case State::pull: return pull();
    case State::show_sums:
      if (!show(nullptr, {0})) return false;
      state_ = State::read_sums;
      return true;
    case State::read_sums:
      if (!read_all({0}, [](std::int32_t, const std::byte*) {})) return false;
      away_ = 1;
      position_ = 0;
      state_ = State::collect;
      return true;
    case State::collect: return collect();
    case State::show_end:
      if (!show(nullptr, {0})) return false;
      state_ = State::read_ends;
      return true;
    case State::read_ends:
      if (!read_all({0}, [](std::int32_t, const std::byte*) {})) return false;
      end();
      return true;
    default: return false;
  }
}

void Pulled::take_offers() {
  bool any_overwrites = false;
  for (const Offer& offer : offers_) {
    any_overwrites |= offer.overwrites_input != 0;
    if (choosing_ != nullptr) choosing_->hear(offer.figures);
  }
  adds_all_ = world_ == 2 && !any_overwrites;
  state_ = State::pull;
  if (choosing_ == nullptr) return;
  chosen_at_ = now();
  if (choosing_->choose() == Quickest::Way::planned) state_ = State::declined;
}

// The next piece.
bool Pulled::pull() { return plan::is_reduction(call_.collective) ? add() : move(); }

// Every rank begins with its own block, then goes on from its neighbour's, so that not all read from one.
bool Pulled::move() {
  for (; away_ < world_; ++away_, position_ = 0) {
    const std::int32_t rank = (rank_ + away_) % world_;
    const std::optional<Part> part = part_of(rank);
    const std::size_t bytes = call_.count.value * width_;
    if (!part || position_ == bytes) continue;
    const std::byte* const from = offers_[static_cast<std::size_t>(rank)].input + part->from;
    if (rank == rank_) {
      if (part->to != from) device::copy({part->to, nullptr, stream_stores_}, {from, bytes});
      position_ = bytes;
      return true;
    }
    const std::size_t n = std::min(kAtOnce, bytes - position_);
    if (!read(rank, part->to + position_, from + position_, n)) return false;
    position_ += n;
    return true;
  }
  state_ = State::show_end;
  return true;
}

// Elements that this rank adds.
BoardCall::Range Pulled::added_here() const {
  switch (call_.collective) {
    case Collective::all_reduce: return adds_all_ ? Range{0, call_.count.value} : chunk_of(rank_);
    case Collective::reduce: return {0, rank_ == call_.root.value ? call_.count.value : 0};
    default: return {static_cast<std::size_t>(rank_) * call_.count.value, call_.count.value};  // reduce-scatter
  }
}

bool Pulled::add() {
  const Range range = added_here();
  if (position_ < range.count) {
    const std::size_t n = std::min(kAdded / width_, range.count - position_), at = (range.first + position_) * width_;
    const std::size_t to = call_.collective == Collective::reduce_scatter ? position_ * width_ : at;
    const auto input = [&](std::int32_t rank) -> const std::byte* {
      const std::byte* const from = offers_[static_cast<std::size_t>(rank)].input + at;
      if (rank == rank_) return from;
      std::byte* const here = rank == 0 ? partial_sum_.get() : read_.get();
      return read(rank, here, from, n * width_) ? here : nullptr;
    };
    if (!add_in_order({static_cast<std::byte*>(call_.output) + to, nullptr, stream_stores_}, partial_sum_.get(), n, input))
      return false;
    position_ += n;
    return true;
  }
  state_ = call_.collective == Collective::all_reduce && !adds_all_ ? State::show_sums : State::show_end;
  return true;
}

// The others' sums.
bool Pulled::collect() {
  for (; away_ < world_; ++away_, position_ = 0) {
    const std::int32_t rank = (rank_ + away_) % world_;
    const Range chunk = chunk_of(rank);
    const std::size_t bytes = chunk.count * width_, at = chunk.first * width_ + position_;
    if (position_ == bytes) continue;
    const std::size_t n = std::min(kAtOnce, bytes - position_);
    if (!read(rank, static_cast<std::byte*>(call_.output) + at, offers_[static_cast<std::size_t>(rank)].output + at, n))
      return false;
    position_ += n;
    return true;
  }
  state_ = State::show_end;
  return true;
}

bool Pulled::read(std::int32_t rank, std::byte* to, const std::byte* from, std::size_t bytes) {
  switch (reader_.read({rank}, to, from, bytes)) {
    case ForeignReader::Outcome::done: received_.value += bytes; return true;
    case ForeignReader::Outcome::gone:  // whoever watches over ranks says so
      waiting_.peer = {rank};
      waiting_.to_receive = true;
      return false;
    case ForeignReader::Outcome::unreadable:
      failure_ = {Code::invalid_argument,
                  fmt::format("{}: the buffer that rank {} gave is not all its memory: {} bytes at {} cannot be read",
                              describe(call_), rank, bytes, static_cast<const void*>(from)),
                  Rank{rank}};
      return false;
    default:
      failure_ = {
          Code::system_error,
          fmt::format("{}: the memory of rank {} can no longer be read: SHOAL_PULL_BYTES=0 does without", describe(call_), rank),
          Rank{rank}};
      return false;
  }
}

std::optional<Pulled::Part> Pulled::part_of(std::int32_t rank) const {
  const std::size_t block = call_.count.value * width_, place = static_cast<std::size_t>(rank) * block;
  const std::size_t own = static_cast<std::size_t>(rank_) * block;
  auto* const out = static_cast<std::byte*>(call_.output);
  const bool is_root = rank == call_.root.value;
  switch (call_.collective) {
    case Collective::broadcast: return is_root ? std::optional<Part>({out, 0}) : std::nullopt;
    case Collective::scatter: return is_root ? std::optional<Part>({out, own}) : std::nullopt;
    case Collective::gather: return rank_ == call_.root.value ? std::optional<Part>({out + place, 0}) : std::nullopt;
    case Collective::all_gather: return Part{out + place, 0};
    default: return Part{out + place, own};  // all-to-all
  }
}

}  // namespace shoal::engine
