// SPDX-License-Identifier: Apache-2.0
// A call over boards in one shot: ranks show what they have and read what they need. Long data go in pieces, an exchange each,
// some of which are shown ahead of what is read.
#pragma once

#include "engine/board_call.h"

namespace shoal::engine {

class OneShot final : public BoardCall {
 public:
  void start(const Call& call, const Setting& setting) override;
  bool advance() override;
  bool done() const override { return read_ == pieces_ && own_copied_; }
  std::string progress() const override { return progress_of(read_, pieces_); }

 private:
  // What a rank's message is made of.
  enum class Content : std::uint8_t { nothing, vector, own_block, all_blocks };
  struct Piece {
    std::size_t begin = 0, elements = 0;  // of the vector, or of every block
  };

  Content content_of(std::int32_t rank) const;
  bool reads_from(std::int32_t rank) const;
  Piece piece_at(std::uint64_t i) const;
  Bytes message_of(std::int32_t rank, const Piece& piece) const;
  std::uint64_t number_of(std::uint64_t piece) const { return first_ + piece; }
  bool show_one();
  bool read_one();
  bool sums_here() const { return reduces_ && (call_.collective != plan::Collective::reduce || rank_ == call_.root.value); }
  std::size_t own_block_in(std::int32_t rank, const Piece& piece) const;
  void take(std::int32_t from, const std::byte* data, const Piece& piece);
  void add_own(const Piece& piece);
  void add(std::int32_t from, const std::byte* summand, const Piece& piece);
  void copy_own() const;
  const std::byte* input(std::int32_t block, std::size_t element) const;
  std::byte* output(std::int32_t block, std::size_t element) const;

  std::size_t piece_elements_ = 1;  // of every piece but the last
  std::uint64_t pieces_ = 0, shown_ = 0, read_ = 0;
  std::int32_t from_ = 0;                     // rank that is read next, of the piece that is being read
  const std::byte* first_summand_ = nullptr;  // rank 0's
  bool reduces_ = false;
  bool adds_input_ = false;  // this rank's summand is read where the user has it, not from its board
  bool own_copied_ = false;
};

}  // namespace shoal::engine
