// SPDX-License-Identifier: Apache-2.0
// A collective that moves data and adds nothing, of ranks of one host: every rank says where its input lies, and reads what it
// needs of the others' straight into its output, each byte copied once. Nobody returns before all have read. The first such call
// finds out whether everybody may read everybody; if not, it and all later ones are run in another way.
#pragma once

#include <optional>
#include <vector>

#include "engine/foreign_reader.h"
#include "engine/round_call.h"

namespace shoal::engine {

class Pulled final : public RoundCall {
 public:
  // `pids`: of all ranks.
  Pulled(World world, std::vector<pid_t> pids);

  // Whether the call may be tried at all: agreed.
  bool may_run(const Call& call) const;

  void start(const Call& call, const Setting& setting) override;
  bool advance() override;
  bool done() const override { return state_ == State::done || state_ == State::declined; }
  // Done, but nothing has been moved.
  bool declined() const { return state_ == State::declined; }
  std::string progress() const override { return ", reading the others' memory"; }

 private:
  enum class State : std::uint8_t {
    prove,
    read_proofs,
    judge,
    read_judgements,
    offer,
    read_offers,
    pull,
    read_ends,
    done,
    declined
  };
  // What this rank takes of one rank's input.
  struct Part {
    std::byte* to;
    std::size_t from;  // bytes after the input's start
  };

  bool step();
  bool pull();
  std::optional<Part> part_of(std::int32_t rank) const;

  // Bytes that are read at a time, some 100 us: aborts and deadlines are looked at in between.
  static constexpr std::size_t kAtOnce = 2 << 20;

  ForeignReader reader_;
  std::vector<const std::byte*> inputs_;  // [world], in their own processes
  State state_ = State::done;
  bool proved_ = false, given_up_ = false;  // once all can read all, or not all: agreed
  bool all_read_ = true;
  std::int32_t away_ = 0;     // the rank that is being read, counted from this one
  std::size_t position_ = 0;  // bytes read of it
};

}  // namespace shoal::engine
