// SPDX-License-Identifier: Apache-2.0
#include "engine/one_shot.h"

namespace shoal::engine {

using plan::Collective;

void OneShot::find_contents() {
  const bool root = rank_ == call_.root.value;
  of_root_ = of_others_ = Content::vector;
  reads_root_ = reads_others_ = true;
  input_block_ = output_block_ = 0;
  const std::size_t block = call_.count.value * width_;
  switch (call_.collective) {
    case Collective::reduce:
      if (root && adds_input_) of_root_ = Content::nothing;
      reads_root_ = false;
      reads_others_ = root;
      break;
    case Collective::broadcast:
      of_others_ = Content::nothing;
      reads_root_ = !root;
      reads_others_ = false;
      break;
    case Collective::all_gather:
      of_root_ = of_others_ = Content::own_block;
      output_block_ = block;
      break;
    case Collective::gather:
      of_root_ = Content::nothing;
      of_others_ = Content::own_block;
      reads_root_ = false;
      reads_others_ = root;
      output_block_ = block;
      break;
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      of_root_ = of_others_ = Content::all_blocks;
      input_block_ = block;
      if (call_.collective == Collective::all_to_all) output_block_ = block;
      break;
    case Collective::scatter:
      of_root_ = Content::all_blocks;
      of_others_ = Content::nothing;
      reads_root_ = !root;
      reads_others_ = false;
      input_block_ = block;
      break;
    default: break;  // all-reduce, and barrier, which has no elements
  }
}

void OneShot::start(const Call& call, const Setting& setting) {
  begin(call, setting);
  reduces_ = plan::is_reduction(call.collective);
  const bool all_blocks = call.collective == Collective::reduce_scatter || call.collective == Collective::all_to_all ||
                          call.collective == Collective::scatter;
  const std::size_t message_block = call.count.value * width_;
  const std::size_t message = message_block * (all_blocks ? static_cast<std::size_t>(world_) : 1);
  piece_elements_ = call.count.value;
  pieces_ = piece_elements_ > 0 || call.collective == Collective::barrier ? 1 : 0;
  if (message > setting.piece.value) {
    piece_elements_ = std::max<std::size_t>(setting.piece.value / (message / call.count.value), 1);
    pieces_ = (call.count.value + piece_elements_ - 1) / piece_elements_;
  }
  shown_ = read_ = 0;
  from_ = 0;
  own_copied_ = pieces_ == 0;
  const std::size_t own = call.collective == Collective::reduce_scatter ? static_cast<std::size_t>(rank_) * message_block : 0;
  const bool in_place = static_cast<const std::byte*>(call.input) + own == call.output;
  adds_input_ = reduces_ && !scales_ && (!in_place || rank_ <= 1);
  find_contents();
}

bool OneShot::advance() {
  if (done()) return false;
  if (!is_open()) return false;
  bool moved = false;
  while (read_ < pieces_) {
    while (shown_ < pieces_ && shown_ < read_ + Boards::kAhead && show_one()) moved = true;
    if (!own_copied_ && shown_ > 0) {
      copy_own();  // while the others get there
      own_copied_ = true;
    }
    if (shown_ == read_ || !read_one()) return moved;
    moved = true;
  }
  return true;
}

bool OneShot::show_one() {
  const Content content = content_of(rank_);
  if (content == Content::nothing) {
    ++shown_;
    return true;
  }
  const Piece piece = piece_at(shown_);
  const Bytes n = message_of(rank_, piece);
  std::byte* to = room(number_of(shown_), n);
  if (to == nullptr) return false;
  const std::int32_t blocks = content == Content::all_blocks ? world_ : 1;
  const bool own_is_read = blocks == 1 || (reduces_ && !adds_input_);
  for (std::int32_t b = 0; b < blocks; ++b, to += piece.elements * width_)
    if (b != rank_ || own_is_read) load(to, input(b, piece.begin), piece.elements);
  boards_->show(number_of(shown_), tag_, n);
  ++shown_;
  return true;
}

// The rest of one piece, as far as it is there.
bool OneShot::read_one() {
  const Piece piece = piece_at(read_);
  for (; from_ < world_; ++from_) {
    if (from_ == rank_) {
      if (sums_here()) add_own(piece);
      continue;
    }
    if (!reads_from(from_)) continue;
    const Bytes n = message_of(from_, piece);
    const std::byte* const data = shown_by(from_, number_of(read_), n);
    if (data == nullptr) return false;
    take(from_, data + own_block_in(from_, piece), piece);
    received_.value += piece.elements * width_;
  }
  from_ = 0;
  ++read_;
  boards_->finish();
  return true;
}

// Where this rank's block lies in another rank's message.
std::size_t OneShot::own_block_in(std::int32_t rank, const Piece& piece) const {
  return content_of(rank) == Content::all_blocks ? static_cast<std::size_t>(rank_) * piece.elements * width_ : 0;
}

void OneShot::take(std::int32_t from, const std::byte* data, const Piece& piece) {
  if (reduces_) return add(from, data, piece);
  device::copy({output(from, piece.begin), nullptr, stream_stores_}, {data, piece.elements * width_});
}

void OneShot::add_own(const Piece& piece) {
  if (adds_input_) return add(rank_, input(rank_, piece.begin), piece);
  add(rank_, boards_->own(number_of(read_), message_of(rank_, piece)) + own_block_in(rank_, piece), piece);
}

// Summands come in the order of ranks.
void OneShot::add(std::int32_t from, const std::byte* summand, const Piece& piece) {
  if (from == 0) {
    first_summand_ = summand;
    return;
  }
  std::byte* const sum = output(rank_, piece.begin);
  const device::CombineFn f = from == world_ - 1 ? kernels_->combine_final : kernels_->combine;
  f({sum, nullptr, stream_stores_}, from == 1 ? first_summand_ : sum, summand, piece.elements, call_.scale);
}

// This rank's block of a result that is copied.
void OneShot::copy_own() const {
  const bool here = !reduces_ &&
                    plan::has_output(call_.collective, rank_, call_.root.value, in_blocks(call_.collective) ? rank_ : 0) &&
                    plan::has_input(call_.collective, rank_, call_.root.value, in_blocks(call_.collective) ? rank_ : 0);
  if (!here) return;
  std::byte* const to = output(rank_, 0);
  const std::byte* const from = input(rank_, 0);
  if (to != from) device::copy({to, nullptr, stream_stores_}, {from, size_of(call_.count, call_.type).value});
}

}  // namespace shoal::engine
