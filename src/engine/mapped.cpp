// SPDX-License-Identifier: Apache-2.0
#include "engine/mapped.h"

namespace shoal::engine {

using plan::Collective;

Mapped::Mapped(World world, std::vector<pid_t> pids)
    : pids_(std::move(pids)), foreign_(world), buffers_(static_cast<std::size_t>(world.value)) {}

// Factors of pre-multiplied sums are their rank's own.
bool Mapped::takes(const Call& call) {
  if (given_up_ || call.collective > Collective::scatter || call.op == ReduceOp::premul_sum || call.codec != nullptr ||
      call.composition != nullptr || call.numerics != Numerics::fast || call.count.value == 0)
    return false;
  const std::size_t bytes = size_of(call.count, call.type).value;
  held_of_call_ = nullptr;
  if (bytes >= kShort) return true;
  held_of_call_ = &held_[static_cast<std::size_t>(call.collective)][static_cast<std::size_t>(std::bit_width(bytes))];
  if (*held_of_call_ == 0) return true;
  --*held_of_call_;
  return false;
}

void Mapped::start(const Call& call, const Setting& setting) {
  begin_rounds(call, setting);
  state_ = State::offer;
  all_offer_ = all_mapped_ = true;
  any_new_ = false;
}

bool Mapped::advance() {
  if (done() || !is_open()) return false;
  bool moved = false;
  while (!done() && step()) moved = true;
  return moved;
}

bool Mapped::step() {
  switch (state_) {
    case State::offer: {
      if (!show(make_offer())) return false;
      state_ = State::read_offers;
      return true;
    }
    case State::read_offers:
      if (!read_all_of<Offer>([this](std::int32_t rank, const Offer& offer) { take_offer(rank, offer); })) return false;
      state_ = !all_offer_ ? State::declined : any_new_ ? State::judge : State::work;
      if (!all_offer_ && held_of_call_ != nullptr) *held_of_call_ = kHeld;
      return true;
    case State::judge: {
      if (!show(std::uint64_t{all_mapped_})) return false;
      state_ = State::read_judgements;
      return true;
    }
    case State::read_judgements:
      if (!read_all_of<std::uint64_t>([this](std::int32_t, std::uint64_t good) { all_mapped_ &= good != 0; })) return false;
      given_up_ = !all_mapped_;
      known_.insert(known_.end(), offered_.begin(), offered_.end());
      state_ = all_mapped_ ? State::work : State::declined;
      return true;
    case State::work:
      if (!all_mapped_) {  // what was mapped before no longer fits what is offered: nobody is deceived, but this rank
        failure_ = another_call(call_, {rank_}, "a buffer that was offered is shorter than the call needs");
        return false;
      }
      work();
      if (!show(nullptr, {0})) return false;
      state_ = State::read_ends;
      return true;
    case State::read_ends:
      if (!read_all({0}, [](std::int32_t, const std::byte*) {})) return false;
      state_ = State::done;
      return true;
    default: return false;
  }
}

// Of its buffers that other ranks read or write.
std::size_t Mapped::input_bytes(std::int32_t rank) const {
  const std::size_t block = call_.count.value * width_;
  switch (call_.collective) {
    case Collective::broadcast: return rank == call_.root.value ? block : 0;
    case Collective::scatter: return rank == call_.root.value ? block * static_cast<std::size_t>(world_) : 0;
    case Collective::reduce_scatter:
    case Collective::all_to_all: return block * static_cast<std::size_t>(world_);
    default: return block;
  }
}
std::size_t Mapped::output_bytes(std::int32_t rank) const {
  const bool written =
      call_.collective == Collective::all_reduce || (call_.collective == Collective::reduce && rank == call_.root.value);
  return written ? call_.count.value * width_ : 0;
}

Mapped::Offer Mapped::make_offer() {
  offered_.clear();
  if (const std::uint64_t frees = device::frees(); frees != frees_) {
    known_.clear();
    frees_ = frees;
  }
  Offer offer{.frees = frees_};
  bool is_new = false;
  offer.complete = describe_part(call_.input, input_bytes(rank_), offer.input, is_new) &&
                           describe_part(call_.output, output_bytes(rank_), offer.output, is_new)
                       ? 1
                       : 0;
  offer.is_new = is_new ? 1 : 0;
  return offer;
}

bool Mapped::describe_part(const void* start, std::size_t bytes, OfferedPart& part, bool& is_new) {
  if (bytes == 0) return true;
  const std::optional<device::Shareable> found = device::shareable(start, {bytes});
  if (!found) return false;
  part = {.number = found->number, .inode = found->inode, .size = found->size, .offset = found->offset, .file = found->file};
  if (std::ranges::find(known_, part.number) != known_.end()) return true;
  is_new = true;
  offered_.push_back(part.number);
  return true;
}

void Mapped::take_offer(std::int32_t rank, const Offer& offer) {
  all_offer_ &= offer.complete != 0;
  any_new_ |= offer.is_new != 0;
  Buffers& here = buffers_[static_cast<std::size_t>(rank)];
  if (rank == rank_) {
    here = {const_cast<std::byte*>(static_cast<const std::byte*>(call_.input)), static_cast<std::byte*>(call_.output)};
    return;
  }
  foreign_.look_at({rank}, offer.frees);
  here = {};
  if (offer.complete == 0) return;
  const pid_t pid = pids_[static_cast<std::size_t>(rank)];
  if (const std::size_t n = input_bytes(rank); n > 0) {
    here.input = foreign_.map({rank}, pid, offer.input, n);
    all_mapped_ &= here.input != nullptr;
  }
  if (const std::size_t n = output_bytes(rank); n > 0) {
    here.output = foreign_.map({rank}, pid, offer.output, n);
    all_mapped_ &= here.output != nullptr;
  }
}

void Mapped::work() {
  const std::size_t n = call_.count.value, block = n * width_, own = static_cast<std::size_t>(rank_);
  const auto world = static_cast<std::size_t>(world_), root = static_cast<std::size_t>(call_.root.value);
  auto* const out = static_cast<std::byte*>(call_.output);
  const auto copy = [&](std::byte* to, std::size_t rank, std::size_t offset) {
    const std::byte* const from = buffers_[rank].input + offset;
    if (to != from) device::copy({to, nullptr, stream_stores_}, {from, block});
    if (rank != own) received_.value += block;
  };
  switch (call_.collective) {
    case Collective::all_reduce:
    case Collective::reduce: {
      const Range chunk = chunk_of(rank_);
      return add(chunk.first, chunk.count, 0);
    }
    case Collective::reduce_scatter: return add(0, n, own * block);
    case Collective::all_gather:
      for (std::size_t i = 0, q = own; i < world; ++i, q = (q + 1) % world) copy(out + q * block, q, 0);
      return;
    case Collective::all_to_all:
      for (std::size_t i = 0, q = own; i < world; ++i, q = (q + 1) % world) copy(out + q * block, q, own * block);
      return;
    case Collective::gather:
      for (std::size_t q = 0; own == root && q < world; ++q) copy(out + q * block, q, 0);
      return;
    case Collective::scatter: return copy(out, root, own * block);
    default: return copy(out, root, 0);  // broadcast
  }
}

// Elements [first, first + elements) of the vector, or of the block that begins `block` bytes after every input's start.
void Mapped::add(std::size_t first, std::size_t elements, std::size_t block) {
  const bool everywhere = call_.collective == Collective::all_reduce;
  std::byte* const main_output = call_.collective == Collective::reduce
                                     ? buffers_[static_cast<std::size_t>(call_.root.value)].output
                                     : static_cast<std::byte*>(call_.output);
  const auto output_of_next = [&](std::int32_t away) {
    return buffers_[static_cast<std::size_t>((rank_ + away) % world_)].output;
  };
  const std::size_t step = kAdded / width_;
  received_.value += elements * width_ * static_cast<std::size_t>(world_ - 1);
  for (std::size_t i = first; i < first + elements; i += step) {
    const std::size_t n = std::min(step, first + elements - i), at = i * width_;
    const auto input = [&](std::int32_t rank) { return buffers_[static_cast<std::size_t>(rank)].input + block + at; };
    // A finished sum is written twice at once, and copied on from the second place; past the caches only once.
    std::byte* const second = !everywhere ? nullptr : stream_stores_ ? partial_sum_.data() : output_of_next(1) + at;
    add_in_order({main_output + at, second, stream_stores_}, partial_sum_.data(), n, input);
    for (std::int32_t away = stream_stores_ ? 1 : 2; everywhere && away < world_; ++away)
      device::copy({output_of_next(away) + at, nullptr, stream_stores_}, {second, n * width_});
  }
}

}  // namespace shoal::engine
