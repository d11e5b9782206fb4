// SPDX-License-Identifier: Apache-2.0
// A plan: what one rank of a collective copies, reduces, sends and receives, as data. Algorithms write plans, the engine runs
// them, the checker proves them. Value types, no pointers: one plan serves every count, type and reduction.
//
// A *chunk* is one share of the vector (for a ring: one rank's), a *slice* the part of all chunks that is in flight. The engine
// cuts the vector into slices and runs each lane's program once for each slice, in order; a step on chunk c means "the part of
// chunk c that lies in this slice". Lanes are independent sequential programs; each has links of its own.
//
// Links are FIFOs with a finite number of credits, one producer and one consumer, and steps name their peer: a set of plans is a
// Kahn network, so neither what it computes nor whether it deadlocks depends on timing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace shoal::plan {

enum class Collective : std::uint8_t { all_reduce };
std::string_view name_of(Collective collective);

// An index that moves with the enclosing loop: (start + stride * i) mod modulus in iteration i. For chunks and for peers.
struct Rotating {
  std::int32_t start = 0;
  std::int32_t stride = 0;
  std::int32_t modulus = 1;

  // |stride| <= modulus and 0 <= i <= modulus keep the product in 64 bits for any world.
  constexpr std::int32_t at(std::int32_t i) const {
    if (stride == 0) return start;
    const std::int64_t moved = (start + static_cast<std::int64_t>(stride) * i) % modulus;
    return static_cast<std::int32_t>(moved < 0 ? moved + modulus : moved);
  }
  friend constexpr bool operator==(const Rotating&, const Rotating&) = default;
};

// start is brought into [0, modulus).
constexpr Rotating rotating(std::int32_t start, std::int32_t stride, std::int32_t modulus) {
  const std::int32_t inside = start % modulus;
  return {inside < 0 ? inside + modulus : inside, stride, modulus};
}
constexpr Rotating fixed(Rank rank) { return {rank.value, 0, 1}; }

// input: what the user handed in; read-only, and scaled as it is read where the reduction asks for it (average, pre-multiplied
// sum). output: the user's result. The two may be the same memory (in place).
enum class Buffer : std::uint8_t { none, input, output };

struct Chunk {
  Buffer buffer = Buffer::none;
  Rotating index;
};
constexpr Chunk input(Rotating index) { return {Buffer::input, index}; }
constexpr Chunk output(Rotating index) { return {Buffer::output, index}; }

// How a message is encoded on the wire.
enum class Codec : std::uint8_t { none };

enum class Op : std::uint8_t {
  copy,              // target = source
  send,              // to <- source
  recv,              // target = from
  recv_reduce,       // target = source (op) from
  recv_reduce_send,  // to <- source (op) from; also kept in target, if there is one
  recv_copy_send,    // target = from; to <- the same
};
std::string_view name_of(Op op);
constexpr bool receives(Op op) { return op >= Op::recv; }
constexpr bool sends(Op op) { return op == Op::send || op >= Op::recv_reduce_send; }
constexpr bool reduces(Op op) { return op == Op::recv_reduce || op == Op::recv_reduce_send; }

struct Step {
  Op op = Op::copy;
  bool final = false;  // the result is the finished reduction (integer averages are divided here); on copy: a world of one
  Codec codec = Codec::none;
  Rotating from;  // rank received from, if op receives
  Rotating to;    // rank sent to, if op sends
  Chunk source;   // local operand
  Chunk target;   // where the result is kept
};

// Steps that run `iterations` times, with the rotating indices at i = 0, 1, ...
struct Loop {
  std::int32_t iterations = 1;
  std::vector<Step> steps;
};

struct Lane {
  std::vector<Loop> loops;
};

struct Plan {
  std::string_view algorithm;  // its name in the table of algorithms
  Collective collective = Collective::all_reduce;
  World world;
  Rank rank;
  std::int32_t chunks = 1;    // the vector is cut into this many; lengths differ by at most one element
  std::int32_t credits = 1;   // messages a link must be able to hold for the plan to finish
  bool by_reference = false;  // also runs where a link holds nothing and a send refers to the sender's memory until it is taken
  std::vector<Lane> lanes;
};

// Calls f(step, iteration) for each step of a lane in the order in which they run.
template <typename F>
void for_each_step(const Lane& lane, F&& f) {
  for (const Loop& loop : lane.loops)
    for (std::int32_t i = 0; i < loop.iterations; ++i)
      for (const Step& step : loop.steps) f(step, i);
}

// One line: "recv_reduce_send from 3 to 1: input[2] -> output[2] final", rotating indices at iteration i.
std::string describe(const Step& step, std::int32_t i);

// The elements [begin, end) of chunk c when `count` elements are cut into `chunks`: lengths differ by at most one.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  constexpr std::size_t length() const { return end - begin; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};
constexpr Range chunk_range(Count count, std::int32_t chunks, std::int32_t c) {
  const std::size_t n = static_cast<std::size_t>(chunks), i = static_cast<std::size_t>(c);
  const std::size_t share = count.value / n, extra = count.value % n;  // the first `extra` chunks have one more
  const std::size_t begin = i * share + (i < extra ? i : extra);
  return {begin, begin + share + (i < extra ? 1 : 0)};
}

}  // namespace shoal::plan
