// SPDX-License-Identifier: Apache-2.0
// A call over boards in one shot: ranks show what they have and read what they need. Long data go in pieces, an exchange each,
// some of which are shown ahead of what is read.
#pragma once

#include "engine/board_call.h"

namespace shoal::engine {

class OneShot final : public BoardCall {
 public:
  void start(const Call& call, const Setting& setting) override;
  // The call that ran last here, in another place of the order.
  void start_again(std::uint64_t ticket, std::uint64_t sequence, std::uint64_t communicator) {
    call_.ticket = ticket;
    call_.sequence = sequence;
    begin_again({signature(call_, communicator)});
    shown_ = read_ = 0;
    own_copied_ = pieces_ == 0;
  }
  bool advance() override;
  bool done() const override { return read_ == pieces_ && own_copied_; }
  std::string progress() const override { return progress_of(read_, pieces_); }

 private:
  // What a rank's message is made of.
  enum class Content : std::uint8_t { nothing, vector, own_block, all_blocks };
  struct Piece {
    std::size_t begin = 0, elements = 0;  // of the vector, or of every block
  };

  void find_contents();
  Content content_of(std::int32_t rank) const { return rank == call_.root.value ? of_root_ : of_others_; }
  bool reads_from(std::int32_t rank) const { return rank == call_.root.value ? reads_root_ : reads_others_; }
  Piece piece_at(std::uint64_t i) const {
    const std::size_t begin = i * piece_elements_;
    return {begin, std::min(piece_elements_, call_.count.value - begin)};
  }
  Bytes message_of(std::int32_t rank, const Piece& piece) const {
    const std::size_t blocks = content_of(rank) == Content::all_blocks ? static_cast<std::size_t>(world_) : 1;
    return {piece.elements * width_ * blocks};
  }
  std::uint64_t number_of(std::uint64_t piece) const { return first_ + piece; }
  bool show_one();
  bool read_one();
  bool sums_here() const { return reduces_ && (call_.collective != plan::Collective::reduce || rank_ == call_.root.value); }
  std::size_t own_block_in(std::int32_t rank, const Piece& piece) const;
  void take(std::int32_t from, const std::byte* data, const Piece& piece);
  void add_own(const Piece& piece);
  void add(std::int32_t from, const std::byte* summand, const Piece& piece);
  void copy_own() const;
  // Where an element of a block is in the user's memory; the vector is block 0 of any rank.
  const std::byte* input(std::int32_t block, std::size_t element) const {
    return static_cast<const std::byte*>(call_.input) + static_cast<std::size_t>(block) * input_block_ + element * width_;
  }
  std::byte* output(std::int32_t block, std::size_t element) const {
    return static_cast<std::byte*>(call_.output) + static_cast<std::size_t>(block) * output_block_ + element * width_;
  }

  // The messages of the root and of the others (who has none: of all), and whether this rank reads them.
  Content of_root_ = Content::vector, of_others_ = Content::vector;
  bool reads_root_ = true, reads_others_ = true;
  std::size_t input_block_ = 0, output_block_ = 0;  // bytes from one block to the next; 0: there is one
  std::size_t piece_elements_ = 1;                  // of every piece but the last
  std::uint64_t pieces_ = 0, shown_ = 0, read_ = 0;
  std::int32_t from_ = 0;                     // rank that is read next, of the piece that is being read
  const std::byte* first_summand_ = nullptr;  // rank 0's
  bool reduces_ = false;
  bool adds_input_ = false;  // this rank's summand is read where the user has it, not from its board
  bool own_copied_ = false;
};

}  // namespace shoal::engine
