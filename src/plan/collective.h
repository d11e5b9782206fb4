// SPDX-License-Identifier: Apache-2.0
// The collectives, and what is true of each of them whatever the algorithm. Value types.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shoal::plan {

enum class Collective : std::uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  barrier,
  all_gather_v,  // blocks of different lengths, which all ranks know
  all_to_all_v,  // blocks of different lengths; each is known to its sender and its receiver only
};
inline constexpr int kCollectives = 11;

std::string_view name_of(Collective collective);
std::optional<Collective> collective_from(std::string_view name);

constexpr bool has_root(Collective c) {
  return c == Collective::reduce || c == Collective::broadcast || c == Collective::gather || c == Collective::scatter;
}
constexpr bool is_reduction(Collective c) {
  return c == Collective::all_reduce || c == Collective::reduce || c == Collective::reduce_scatter;
}
// The data are one block a rank; else one vector (or, for a barrier, nothing).
constexpr bool in_blocks(Collective c) {
  return c != Collective::all_reduce && c != Collective::reduce && c != Collective::broadcast && c != Collective::barrier;
}
// Input and output may be the same memory, chunk by chunk.
constexpr bool has_in_place(Collective c) {
  return c != Collective::all_to_all && c != Collective::all_to_all_v && c != Collective::barrier;
}

// Whether this rank has chunks of block b (0 for a vector) in its input, in its output.
constexpr bool has_input(Collective c, std::int32_t rank, std::int32_t root, std::int32_t b) {
  switch (c) {
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::all_to_all_v: return true;
    case Collective::broadcast:
    case Collective::scatter: return rank == root;
    case Collective::all_gather:
    case Collective::all_gather_v:
    case Collective::gather: return b == rank;
    case Collective::barrier: return false;
  }
  return false;
}
constexpr bool has_output(Collective c, std::int32_t rank, std::int32_t root, std::int32_t b) {
  switch (c) {
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::all_gather:
    case Collective::all_gather_v:
    case Collective::all_to_all:
    case Collective::all_to_all_v: return true;
    case Collective::reduce:
    case Collective::gather: return rank == root;
    case Collective::reduce_scatter:
    case Collective::scatter: return b == rank;
    case Collective::barrier: return false;
  }
  return false;
}

}  // namespace shoal::plan
