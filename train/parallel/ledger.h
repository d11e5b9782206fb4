// SPDX-License-Identifier: Apache-2.0
// What a rank has sent and what it holds, counted where it happens, so that a run can be compared with the formulas of its
// scheme. Sent: the payload that a rank must give to others by the collective's lower bound, whatever algorithm the library
// takes: for n bytes in all over p ranks, all-reduce 2 (p-1)/p n, all-gather and reduce-scatter (p-1)/p n, all-to-all (p-1)/p of
// what it has, send n. Of these, between nodes of g consecutive ranks, of which there are m: what a node must give to others, all
// its ranks alike: all-reduce 2 (m-1)/m n/g, all-gather and reduce-scatter (m-1)/m n/g, all-to-all (m-1)/m of what it has.
// Held: bytes by class, with the peak of each class and of their sum. One thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shoal::train {

enum class Moves : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, point_to_point };
inline constexpr std::array<std::string_view, 6> kMovesNames{"all_reduce", "all_gather", "reduce_scatter",
                                                             "all_to_all", "broadcast",  "point_to_point"};
enum class Holds : std::uint8_t { parameters, secondary, gradients, optimizer, activations, working };
inline constexpr std::array<std::string_view, 6> kHoldsNames{"parameters", "secondary",   "gradients",
                                                             "optimizer",  "activations", "working"};

class Ledger {
 public:
  struct Sent {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;    // that this rank must send, see above
    std::uint64_t between = 0;  // of them: to other nodes
  };

  // `bytes`: of the whole operation: the vector of an all-reduce or broadcast, the gathered or to be scattered vector, all that
  // this rank has for an all-to-all, the message of a send. `node`: ranks of a node, of these; 0: all of them.
  void sent(Moves how, std::size_t bytes, std::size_t world, std::size_t node = 0) {
    Sent& all = sent_[static_cast<std::size_t>(how)];
    ++all.calls;
    if (world <= 1) return;
    if (node == 0) node = world;
    const std::size_t nodes = world / node;
    switch (how) {
      case Moves::all_reduce:
        all.bytes += share(2 * bytes, world);
        all.between += share(2 * bytes, nodes) / node;
        return;
      case Moves::all_gather:
      case Moves::reduce_scatter:
        all.bytes += share(bytes, world);
        all.between += share(bytes, nodes) / node;
        return;
      case Moves::all_to_all:
        all.bytes += share(bytes, world);
        all.between += share(bytes, nodes);
        return;
      case Moves::broadcast:
      case Moves::point_to_point:
        all.bytes += bytes;
        all.between += nodes > 1 ? bytes : 0;
        return;
    }
  }
  const Sent& sent(Moves how) const { return sent_[static_cast<std::size_t>(how)]; }
  std::uint64_t sent_bytes() const {
    std::uint64_t all = 0;
    for (const Sent& each : sent_) all += each.bytes;
    return all;
  }
  std::uint64_t sent_between() const {
    std::uint64_t all = 0;
    for (const Sent& each : sent_) all += each.between;
    return all;
  }
  void forget_sent() { sent_ = {}; }

  void hold(Holds what, std::size_t bytes) {
    held_[static_cast<std::size_t>(what)] += bytes;
    total_ += bytes;
    peaks_[static_cast<std::size_t>(what)] = std::max(peaks_[static_cast<std::size_t>(what)], held(what));
    peak_ = std::max(peak_, total_);
  }
  void release(Holds what, std::size_t bytes) {
    held_[static_cast<std::size_t>(what)] -= bytes;
    total_ -= bytes;
  }
  std::size_t held(Holds what) const { return held_[static_cast<std::size_t>(what)]; }
  std::size_t peak(Holds what) const { return peaks_[static_cast<std::size_t>(what)]; }
  std::size_t peak() const { return peak_; }  // of the sum of all classes

 private:
  static std::size_t share(std::size_t bytes, std::size_t n) { return bytes * (n - 1) / n; }  // of the others

  std::array<Sent, kMovesNames.size()> sent_{};
  std::array<std::size_t, kHoldsNames.size()> held_{}, peaks_{};
  std::size_t total_ = 0, peak_ = 0;
};

}  // namespace shoal::train
