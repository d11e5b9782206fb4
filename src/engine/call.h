// SPDX-License-Identifier: Apache-2.0
// One collective call as the engine runs it: the user's memory and what is to be done to it. Value type.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/types.h"
#include "device/reduce.h"
#include "plan/plan.h"

namespace shoal::compress {
struct Codec;
}

namespace shoal::engine {

class Composition;

// Blocks of different lengths, in elements; block q begins `offset` elements after the start of its buffer. Empty vectors for a
// buffer whose blocks this rank has only one of, or none.
struct Blocks {
  std::vector<std::size_t> counts;   // [world]
  std::vector<std::size_t> offsets;  // [world]
};

struct Uneven {
  Blocks input;   // all_to_all_v: what goes to each rank. all_gather_v: counts alone: every rank's
  Blocks output;  // what comes from each rank
};

// What is promised of the bits of a reduction's result.
enum class Numerics : std::uint8_t {
  fast,     // the same on all ranks
  ordered,  // and for any count, slice, transport and algorithm, at a given world
  exact,    // and for any world and order of ranks: the true sum, rounded once
};
std::string_view name_of(Numerics numerics);
std::optional<Numerics> numerics_from(std::string_view name);

struct Call {
  plan::Collective collective = plan::Collective::all_reduce;
  const void* input = nullptr;
  void* output = nullptr;
  Count count;  // of the vector, or of one block; of the longest block this rank sends or receives where they differ
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  device::Scale scale;
  std::array<std::byte, 8> factor{};  // of a pre-multiplied sum: one element, this rank's
  Rank root;
  Numerics numerics = Numerics::fast;
  std::shared_ptr<const Uneven> uneven;  // of the collectives with blocks of different lengths
  // Not null: messages travel encoded, of float32. What a rank keeps of a result is rounded as what it sends of it.
  const compress::Codec* codec = nullptr;
  std::shared_ptr<Composition> composition;  // not null: the call is made of other ones
  std::uint64_t variant = 0;                 // what else all ranks must agree on, digested: how it is compressed; 0: nothing
  std::uint64_t ticket = 0;                  // place in this rank's order: 1, 2, ...
  std::uint64_t sequence = 0;                // of this communicator's collectives: 1, 2, ...; equal on all ranks
};

// "all_reduce #88 of 1000 float32, sum"; "broadcast #3 of 7 int8, root 2"
std::string describe(const Call& call);

// A message that belongs to another call has come from `rank`; `how` that shows.
Status another_call(const Call& call, Rank rank, const std::string& how);

// What all ranks must agree on besides the members above, digested: lengths of all_gather_v, how a call is compressed; 0:
// nothing.
std::uint64_t details_digest(const Call& call);

// What the receiver of a message compares before it touches the data. Equal on all ranks exactly if they make the same call.
std::uint32_t signature(const Call& call, std::uint64_t communicator);

}  // namespace shoal::engine
