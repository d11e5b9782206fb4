// SPDX-License-Identifier: Apache-2.0
// A call run over boards: the plans named one_shot, whose whole communication is that ranks show what they have and read what
// they need. Long data go in pieces, an exchange each, some of which are shown ahead of what is read. Results and their bits are
// those of the plan: sums are added in the order of ranks. Nothing is allocated.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/boards.h"
#include "engine/call.h"
#include "engine/composition.h"
#include "engine/waiting.h"

namespace shoal::engine {

class OneShot {
 public:
  // `own_board`: this rank's window for boards.
  void start(const Call& call, Boards& boards, std::span<std::byte> own_board, World world, Rank rank, link::Tag tag);

  // Runs what can run now; true if anything moved.
  bool advance();
  bool done() const { return read_ == pieces_ && own_copied_; }
  const Status& failure() const { return failure_; }
  const Call& call() const { return call_; }
  const Waiting& waiting() const { return waiting_; }
  // What is read on other ranks' boards is received.
  Traffic traffic() const { return {.sent = {}, .received = received_}; }
  // ", piece 3 of 8"
  std::string progress() const;

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

  Call call_;
  Boards* boards_ = nullptr;
  std::span<std::byte> own_board_;
  const device::ReduceKernels* kernels_ = nullptr;
  std::int32_t world_ = 1, rank_ = 0;
  link::Tag tag_;
  std::size_t width_ = 1;           // bytes of an element
  std::size_t piece_elements_ = 1;  // of every piece but the last
  std::uint64_t first_ = 0;         // the first exchange
  std::uint64_t pieces_ = 0, shown_ = 0, read_ = 0;
  std::int32_t from_ = 0;                     // rank that is read next, of the piece that is being read
  const std::byte* first_summand_ = nullptr;  // rank 0's
  bool reduces_ = false, scales_ = false, stream_stores_ = false;
  bool adds_input_ = false;  // this rank's summand is read where the user has it, not from its board
  bool own_copied_ = false;
  Bytes received_;
  Waiting waiting_;
  Status failure_;
};

}  // namespace shoal::engine
