// SPDX-License-Identifier: Apache-2.0
// An all-reduce or a reduce over boards in two shots: everybody shows the vector, adds its chunk of all of them and shows the
// sum; then the others' sums are copied. Long vectors go in pieces of two exchanges each: the next piece is shown, and the one
// after added, before the sums of a piece are looked for, so that they are there when they are wanted.
#pragma once

#include <vector>

#include "engine/board_call.h"

namespace shoal::engine {

class TwoShot final : public BoardCall {
 public:
  void start(const Call& call, const Setting& setting) override;
  bool advance() override;
  bool done() const override { return copied_ == pieces_; }
  std::string progress() const override { return progress_of(copied_, pieces_); }

 private:
  struct Piece {
    std::size_t begin = 0, elements = 0;  // of the vector
    std::size_t chunk = 0;                // elements of each rank's chunk; the last ones may be shorter, or empty
    std::size_t begin_of(std::int32_t rank) const { return std::min(elements, chunk * static_cast<std::size_t>(rank)); }
    std::size_t length_of(std::int32_t rank) const { return begin_of(rank + 1) - begin_of(rank); }
  };

  Piece piece_at(std::uint64_t i) const;
  std::uint64_t number_of_input(std::uint64_t piece) const { return first_ + 2 * piece; }
  std::uint64_t number_of_sum(std::uint64_t piece) const { return first_ + 2 * piece + 1; }
  bool show_input();
  bool add();
  bool copy_sums();
  bool has_output() const { return call_.collective == plan::Collective::all_reduce || rank_ == call_.root.value; }
  const std::byte* input(std::size_t element) const { return static_cast<const std::byte*>(call_.input) + element * width_; }
  std::byte* output(std::size_t element) const { return static_cast<std::byte*>(call_.output) + element * width_; }

  std::size_t piece_elements_ = 1;
  // Pieces that are shown, added, and copied.
  std::uint64_t pieces_ = 0, shown_ = 0, added_ = 0, copied_ = 0;
  std::int32_t from_ = 0;                   // rank that is looked for next, of the piece that is being added
  std::int32_t copied_from_ = 0;            // or copied
  std::vector<const std::byte*> summands_;  // [world]: each rank's chunk of the piece that is being added
};

}  // namespace shoal::engine
