// SPDX-License-Identifier: Apache-2.0
// A collective of ranks of one host that read each other's memory: every rank says where its buffers lie, and reads what it needs
// of the others', each byte copied once by the kernel and nothing asked of whoever owns it. What is moved goes straight into the
// output. Of what is added every rank reads a piece of each input, adds, and goes on; all-reduces are cut into a chunk a rank,
// and the others' sums are read from their outputs; two ranks that do not overwrite their inputs both add everything instead.
// Nobody returns before all have read.
//
// The first call finds out whether everybody may read everybody; if not, it and all later ones are run in another way. Whether
// that would be quicker, too, is measured where it is left open.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/foreign_reader.h"
#include "engine/quickest.h"
#include "engine/round_call.h"

namespace shoal::engine {

class Pulled final : public RoundCall {
 public:
  // `pids`: of all ranks.
  Pulled(World world, std::vector<pid_t> pids);

  // Whether the next call, this one, begins here: agreed. `always`: not only while it is the quicker way. std::bad_alloc.
  bool takes(const Call& call, bool always);

  void start(const Call& call, const Setting& setting) override;
  bool advance() override;
  bool done() const override { return state_ == State::done || state_ == State::declined; }
  // Done, but nothing has been moved.
  bool declined() const { return state_ == State::declined; }
  // A call that is run elsewhere has ended.
  void ended_elsewhere();
  std::string progress() const override { return ", reading the others' memory"; }

 private:
  enum class State : std::uint8_t {
    prove,
    read_proofs,
    judge,
    read_judgements,
    offer,
    read_offers,
    pull,       // the inputs
    show_sums,  // of an all-reduce in chunks: nobody reads inputs any more, and this rank's sums are there
    read_sums,
    collect,
    show_end,
    read_ends,
    done,
    declined
  };
  // As it is shown.
  struct Offer {
    const std::byte* input;  // in its own process, as the output
    const std::byte* output;
    Quickest::Figures figures;
    std::uint64_t overwrites_input;
  };
  // What this rank takes of one rank's input.
  struct Part {
    std::byte* to;
    std::size_t from;  // bytes after the input's start
  };

  bool step();
  void take_offers();
  bool pull();
  bool move();
  bool add();
  bool collect();
  bool read(std::int32_t rank, std::byte* to, const std::byte* from, std::size_t bytes);
  void end();
  std::optional<Part> part_of(std::int32_t rank) const;
  Range added_here() const;
  Quickest& quickest_of(const Call& call);

  // Bytes that are read at a time, some ms: aborts and deadlines are looked at in between.
  static constexpr std::size_t kAtOnce = 16 << 20;
  static constexpr std::size_t kAdded = 128 << 10;  // bytes that are read and then added: second-level caches hold two of these

  ForeignReader reader_;
  std::vector<Offer> offers_;               // [world]
  bool proved_ = false, given_up_ = false;  // once all can read all, or not all: agreed
  bool all_read_ = true;
  std::unique_ptr<std::byte[]> read_, partial_sum_;  // [kAdded] each

  State state_ = State::done;
  bool adds_all_ = false;     // of an all-reduce: everybody adds everything
  std::int32_t away_ = 0;     // the rank that is being read, counted from this one
  std::size_t position_ = 0;  // bytes read of it; or elements added

  struct Choice {
    plan::Collective collective;
    int length_class;  // log2 of the number of elements
    DataType type;
    std::unique_ptr<Quickest> quickest;
  };
  std::vector<Choice> choices_;
  Quickest* choosing_ = nullptr;  // null: it is run here in any case
  std::uint64_t chosen_at_ = 0;   // nanoseconds; 0: nothing to measure
};

}  // namespace shoal::engine
