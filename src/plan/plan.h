// SPDX-License-Identifier: Apache-2.0
// A plan: what one rank of a collective copies, reduces, sends and receives, as data. Algorithms write plans, the engine runs
// them, the checker proves them, the simulator prices them. Value types, no pointers: one plan serves every count, type and
// reduction.
//
// The data are one vector (all-reduce, reduce, broadcast) or one block a rank (all other collectives); a *chunk* is a share of
// the vector or of a block: chunk b * chunks + j is the j-th of block b. Chunks are numbered alike in input and output: the
// all-gather of rank 2 has only chunk 2 (of one a block) in its input. A *slice* is the part of all chunks that is in flight: the
// engine cuts the data into slices and runs each lane's program once for each slice, in order; a step on chunk c means "the part
// of chunk c that lies in this slice".
//
// Links are FIFOs with a finite number of credits, one producer and one consumer, and steps name their peer: a set of plans is a
// Kahn network, so neither what it computes nor whether it deadlocks depends on timing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"
#include "plan/collective.h"

namespace shoal::plan {

// An index that moves with the enclosing loop: base + scale * ((start + stride * i) mod modulus) in iteration i. For chunks and
// for peers; base and scale place the numbers of a part (the ranks of a host, the chunks of one rank) among those of the whole.
struct Rotating {
  std::int32_t start = 0;
  std::int32_t stride = 0;
  std::int32_t modulus = 1;
  std::int32_t scale = 1;
  std::int32_t base = 0;

  // |stride| <= modulus and 0 <= i <= modulus keep the product in 64 bits for any world.
  constexpr std::int32_t at(std::int32_t i) const {
    if (stride == 0) return base + scale * start;
    const std::int64_t moved = (start + static_cast<std::int64_t>(stride) * i) % modulus;
    return base + scale * static_cast<std::int32_t>(moved < 0 ? moved + modulus : moved);
  }
  friend constexpr bool operator==(const Rotating&, const Rotating&) = default;
};

// start is brought into [0, modulus).
constexpr Rotating rotating(std::int32_t start, std::int32_t stride, std::int32_t modulus) {
  const std::int32_t inside = start % modulus;
  return {inside < 0 ? inside + modulus : inside, stride, modulus};
}
constexpr Rotating fixed(std::int32_t index) { return {index, 0, 1}; }
constexpr Rotating fixed(Rank rank) { return fixed(rank.value); }

// input: what the user handed in; read-only, and scaled as it is read where the reduction asks for it (average, pre-multiplied
// sum). output: the user's result. The two may be the same memory (in place).
// scratch: slots of this rank's own, one set for every slice in flight; slot s has the length of chunk s mod (number of chunks).
// shared: slots that the other ranks of the host can read (copy_shared, reduce_shared); two sets that runs of the program use in
// turn, so that a slot may be overwritten in the run after the next.
enum class Buffer : std::uint8_t { none, input, output, scratch, shared };

// Chunks of one buffer that a step moves together, in one message: `size` of them, the t-th being
//   index + (t / run) * pitch + t mod run,   modulo `wrap` if that is not 0.
// One chunk is size 1; neighbours are run = size; every second chunk is run = 1, pitch = 2.
struct Chunk {
  Buffer buffer = Buffer::none;
  Rotating index;
  std::int32_t size = 1;
  std::int32_t run = 1;
  std::int32_t pitch = 1;
  std::int32_t wrap = 0;

  // The t-th chunk, 0 <= t < size, in iteration i.
  constexpr std::int32_t at(std::int32_t t, std::int32_t i) const {
    const std::int32_t first = index.at(i);
    if (size == 1) return first;
    std::int64_t at = first + static_cast<std::int64_t>(t / run) * pitch + t % run;
    if (wrap != 0) at = at % wrap < 0 ? at % wrap + wrap : at % wrap;
    return static_cast<std::int32_t>(at);
  }
  friend constexpr bool operator==(const Chunk&, const Chunk&) = default;
};
constexpr Chunk input(Rotating index) { return {Buffer::input, index}; }
constexpr Chunk output(Rotating index) { return {Buffer::output, index}; }
constexpr Chunk scratch(Rotating slot) { return {Buffer::scratch, slot}; }
constexpr Chunk shared(Rotating slot) { return {Buffer::shared, slot}; }
// `size` neighbours from `first` on, modulo `wrap` if that is not 0.
constexpr Chunk window(Buffer buffer, Rotating first, std::int32_t size, std::int32_t wrap = 0) {
  return {buffer, first, size, size, 1, wrap};
}
// first, first + pitch, ...
constexpr Chunk every(Buffer buffer, Rotating first, std::int32_t size, std::int32_t pitch, std::int32_t wrap = 0) {
  return {buffer, first, size, 1, pitch, wrap};
}

enum class Op : std::uint8_t {
  copy,              // target = source
  reduce,            // target = source (op) target
  send,              // to <- source
  recv,              // target = from
  recv_reduce,       // target = source (op) from
  recv_reduce_send,  // to <- source (op) from; also kept in target, if there is one
  recv_copy_send,    // target = from; to <- the same
  signal,            // to <- an empty message
  wait,              // an empty message comes from `from`
  copy_shared,       // target = source, which is a shared slot of rank `from`
  reduce_shared,     // target = source (op) source ..., the same shared slot of every rank, in the order of ranks from 0
};
std::string_view name_of(Op op);
constexpr bool receives(Op op) {
  return op == Op::recv || op == Op::recv_reduce || op == Op::recv_reduce_send || op == Op::recv_copy_send || op == Op::wait;
}
constexpr bool sends(Op op) {
  return op == Op::send || op == Op::recv_reduce_send || op == Op::recv_copy_send || op == Op::signal;
}
constexpr bool reduces(Op op) {
  return op == Op::reduce || op == Op::recv_reduce || op == Op::recv_reduce_send || op == Op::reduce_shared;
}
// Signals carry no data, and are sent however short the slice is; every other message is left out on both sides if it is empty.
constexpr bool carries_data(Op op) { return op != Op::signal && op != Op::wait; }

struct Step {
  Op op = Op::copy;
  bool final = false;  // the result is the finished reduction (integer averages are divided here); on copy: a world of one
  Rotating from;       // rank received from, if op receives; rank whose slot is read by copy_shared
  Rotating to;         // rank sent to, if op sends
  Chunk source;        // local operand
  Chunk target;        // where the result is kept
};

// Steps that run `iterations` times, with the rotating indices at i = 0, 1, ...
struct Loop {
  std::int32_t iterations = 1;
  std::vector<Step> steps;
};

// A sequential program, independent of the rank's other lanes. Its messages go over the links of its channel; two lanes of a
// rank may share a channel if no two send to, or receive from, the same peer on it (a tree's way up and its way down).
struct Lane {
  std::int32_t channel = 0;
  std::vector<Loop> loops;
};

// Which additions make up each element of the result.
enum class Order : std::uint8_t {
  any,        // may differ from chunk to chunk; the same on all ranks
  butterfly,  // the tree of recursive doubling over the folded world, for every element: see butterfly_order in order.h
};

// What a plan is asked for.
struct Request {
  Collective collective = Collective::all_reduce;
  World world;
  Rank rank;
  Rank root;               // of rooted collectives
  std::int32_t group = 0;  // ranks r with equal r / group are close to each other (one host); 0: nothing is known
};

// Plans of one idea whose steps between ranks that map each other's memory the engine takes over boards (engine/boards.h).
enum class Boards : std::uint8_t {
  unused,
  one_shot,  // ranks show what they have and read what they need, once
  two_shot,  // of a reduction: each rank shows the vector, adds its chunk of all, shows the sum; the others' sums are read
};

struct Plan {
  std::string_view algorithm;  // its name in the table of algorithms
  Collective collective = Collective::all_reduce;
  World world;
  Rank rank;
  Rank root;
  std::int32_t chunks = 1;    // the vector, or each block, is cut into this many; lengths differ by at most one element
  std::int32_t scratch = 0;   // slots
  std::int32_t shared = 0;    // slots; not 0: all ranks must be on one host
  std::int32_t credits = 1;   // messages a link must be able to hold for the plan to finish
  bool by_reference = false;  // also right where a send refers to the sender's memory until the receiver takes it
  Boards boards = Boards::unused;
  bool pipelined = false;  // its time falls with the length of a slice: ranks work on several slices at once
  Order order = Order::any;
  std::string_view refusal;  // not empty: why this algorithm has no plan for the request; everything else is then void
  std::vector<Lane> lanes;
};

// Number of chunks of input and output.
constexpr std::int32_t chunk_space(const Plan& plan) { return plan.chunks * (in_blocks(plan.collective) ? plan.world.value : 1); }
// Most chunks in one message of this rank, 0 without data; all ranks cut the data for the widest of theirs. Number of channels.
// O(steps).
std::int32_t widest(const Plan& plan);
std::int32_t channels(const Plan& plan);

// Calls f(step, iteration) for each step of a lane in the order in which they run.
template <typename F>
void for_each_step(const Lane& lane, F&& f) {
  for (const Loop& loop : lane.loops)
    for (std::int32_t i = 0; i < loop.iterations; ++i)
      for (const Step& step : loop.steps) f(step, i);
}

// One line: "recv_reduce_send from 3 to 1: input[2] -> output[2] final", rotating indices at iteration i.
std::string describe(const Step& step, std::int32_t i);
// "output[3]", "scratch[4..7]", "output[0,2,4]"
std::string describe(const Chunk& chunk, std::int32_t i);

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
