// SPDX-License-Identifier: Apache-2.0
#include "engine/two_shot.h"

namespace shoal::engine {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kAdded = 8 << 10;  // bytes of a sum that stays in the first-level cache while all summands are added

}  // namespace

void TwoShot::start(const Call& call, const Setting& setting) {
  begin(call, setting);
  summands_.resize(static_cast<std::size_t>(world_));
  piece_elements_ = setting.piece.value / width_;
  pieces_ = (call.count.value + piece_elements_ - 1) / piece_elements_;
  shown_ = added_ = copied_ = 0;
  from_ = copied_from_ = 0;
}

// Chunks begin at cache lines of the piece.
TwoShot::Piece TwoShot::piece_at(std::uint64_t i) const {
  const std::size_t begin = i * piece_elements_, elements = std::min(piece_elements_, call_.count.value - begin);
  const std::size_t line = kCacheLine / width_, world = static_cast<std::size_t>(world_);
  return {begin, elements, (elements + line * world - 1) / (line * world) * line};
}

// The order in which exchanges are shown and finished keeps each rank within Boards::kAhead of what it has finished.
bool TwoShot::advance() {
  if (done()) return false;
  if (!is_open()) return false;
  bool moved = false;
  while (copied_ < pieces_) {
    if (shown_ < pieces_ && shown_ <= added_ + 1 && shown_ <= copied_ + 2 && show_input()) {
      moved = true;
    } else if (added_ < shown_ && added_ <= copied_ + 1 && add()) {
      moved = true;
    } else if (copied_ < added_ && copy_sums()) {
      moved = true;
    } else {
      return moved;
    }
  }
  return true;
}

bool TwoShot::show_input() {
  const Piece piece = piece_at(shown_);
  const std::uint64_t number = number_of_input(shown_);
  const Bytes n{piece.elements * width_};
  std::byte* const to = room(number, n);
  if (to == nullptr) return false;
  // Of its own chunk the rank needs no copy but a scaled one.
  const std::size_t before = piece.begin_of(rank_), after = scales_ ? before : piece.begin_of(rank_ + 1);
  load(to, input(piece.begin), before);
  load(to + after * width_, input(piece.begin + after), piece.elements - after);
  boards_->show(number, tag_, n);
  ++shown_;
  return true;
}

bool TwoShot::add() {
  const Piece piece = piece_at(added_);
  const std::size_t own = piece.begin_of(rank_), length = piece.length_of(rank_);
  const Bytes whole{piece.elements * width_};
  for (; from_ < world_; ++from_) {
    const std::uint64_t number = number_of_input(added_);
    const bool here = from_ == rank_;
    const std::byte* const data = here ? boards_->own(number, whole) : shown_by(from_, number, whole);
    if (data == nullptr) return false;
    summands_[static_cast<std::size_t>(from_)] = here && !scales_ ? input(piece.begin + own) : data + own * width_;
    if (!here) received_.value += length * width_;
  }
  const Bytes n{length * width_};
  std::byte* const sum = room(number_of_sum(added_), n);
  if (sum == nullptr) return false;
  const std::size_t step = std::max<std::size_t>(kAdded / width_, 1);
  for (std::size_t i = 0; i < length; i += step) {
    const std::size_t at = i * width_, elements = std::min(step, length - i);
    for (std::int32_t q = 1; q < world_; ++q) {
      const std::byte* const before = q == 1 ? summands_[0] + at : sum + at;
      const std::byte* const summand = summands_[static_cast<std::size_t>(q)] + at;
      if (q < world_ - 1)
        kernels_->combine({sum + at}, before, summand, elements, call_.scale);
      else if (has_output())
        kernels_->combine_final({output(piece.begin + own + i), sum + at, stream_stores_}, before, summand, elements,
                                call_.scale);
      else
        kernels_->combine_final({sum + at}, before, summand, elements, call_.scale);
    }
  }
  boards_->show(number_of_sum(added_), tag_, n);
  from_ = 0;
  ++added_;
  return true;
}

bool TwoShot::copy_sums() {
  const Piece piece = piece_at(copied_);
  for (; copied_from_ < world_; ++copied_from_) {
    if (copied_from_ == rank_ || !has_output()) continue;
    const Bytes n{piece.length_of(copied_from_) * width_};
    const std::byte* const data = shown_by(copied_from_, number_of_sum(copied_), n);
    if (data == nullptr) return false;
    device::copy({output(piece.begin + piece.begin_of(copied_from_)), nullptr, stream_stores_}, {data, n.value});
    received_.value += n.value;
  }
  copied_from_ = 0;
  ++copied_;
  boards_->finish();
  boards_->finish();
  return true;
}

}  // namespace shoal::engine
