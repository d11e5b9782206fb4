// SPDX-License-Identifier: Apache-2.0
#include "engine/pulled.h"

namespace shoal::engine {

using plan::Collective;

Pulled::Pulled(World world, std::vector<pid_t> pids) : reader_(std::move(pids)), inputs_(static_cast<std::size_t>(world.value)) {}

bool Pulled::may_run(const Call& call) const {
  return !given_up_ && call.collective <= Collective::scatter && !plan::is_reduction(call.collective) && call.codec == nullptr &&
         call.composition == nullptr && call.count.value > 0;
}

void Pulled::start(const Call& call, const Setting& setting) {
  begin_rounds(call, setting);
  state_ = proved_ ? State::offer : State::prove;
  all_read_ = true;
  away_ = 0;
  position_ = 0;
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
    case State::offer:
      if (!show(call_.input)) return false;
      state_ = State::read_offers;
      return true;
    case State::read_offers:
      if (!read_all_of<const std::byte*>(
              [this](std::int32_t rank, const std::byte* input) { inputs_[static_cast<std::size_t>(rank)] = input; }))
        return false;
      state_ = State::pull;
      return true;
    case State::pull: return pull();
    case State::read_ends:
      if (!read_all({0}, [](std::int32_t, const std::byte*) {})) return false;
      state_ = State::done;
      return true;
    default: return false;
  }
}

// The next piece. Every rank begins with its own block, then goes on from its neighbour's, so that not all read from one.
bool Pulled::pull() {
  for (; away_ < world_; ++away_, position_ = 0) {
    const std::int32_t rank = (rank_ + away_) % world_;
    const std::optional<Part> part = part_of(rank);
    const std::size_t bytes = call_.count.value * width_;
    if (!part || position_ == bytes) continue;
    const std::byte* const from = inputs_[static_cast<std::size_t>(rank)] + part->from;
    if (rank == rank_) {
      if (part->to != from) device::copy({part->to, nullptr, stream_stores_}, {from, bytes});
      position_ = bytes;
      return true;
    }
    const std::size_t n = std::min(kAtOnce, bytes - position_);
    switch (reader_.read({rank}, part->to + position_, from + position_, n)) {
      case ForeignReader::Outcome::done: break;
      case ForeignReader::Outcome::gone:  // whoever watches over ranks says so
        waiting_.peer = {rank};
        waiting_.to_receive = true;
        return false;
      case ForeignReader::Outcome::unreadable:
        failure_ = {Code::invalid_argument,
                    fmt::format("{}: the buffer that rank {} gave is not {} bytes of its memory", describe(call_), rank,
                                part->from + bytes),
                    Rank{rank}};
        return false;
      case ForeignReader::Outcome::refused:
        failure_ = {Code::system_error,
                    fmt::format("{}: the memory of rank {} can no longer be read: SHOAL_PULL_BYTES=0 does without",
                                describe(call_), rank),
                    Rank{rank}};
        return false;
    }
    position_ += n;
    received_.value += n;
    return true;
  }
  if (!show(nullptr, {0})) return false;
  state_ = State::read_ends;
  return true;
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
