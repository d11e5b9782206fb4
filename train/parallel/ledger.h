// SPDX-License-Identifier: Apache-2.0
// What a rank has sent and what it holds, counted where it happens, so that a run can be compared with the formulas of its
// scheme. Sent: the payload that a rank must give to others by the collective's lower bound, whatever algorithm the library
// takes: for n bytes in all over p ranks, all-reduce 2 (p-1)/p n, all-gather and reduce-scatter (p-1)/p n, all-to-all (p-1)/p of
// what it has, send n. Held: bytes by class, with the peak of each class and of their sum. One thread.
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
enum class Holds : std::uint8_t { parameters, gradients, optimizer, activations, working };
inline constexpr std::array<std::string_view, 5> kHoldsNames{"parameters", "gradients", "optimizer", "activations", "working"};

class Ledger {
 public:
  struct Sent {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;  // that this rank must send, see above
  };

  // `bytes`: of the whole operation: the vector of an all-reduce or broadcast, the gathered or to be scattered vector, all that
  // this rank has for an all-to-all, the message of a send.
  void sent(Moves how, std::size_t bytes, std::size_t world) {
    Sent& all = sent_[static_cast<std::size_t>(how)];
    ++all.calls;
    if (world <= 1) return;
    const std::size_t others = bytes * (world - 1) / world;
    switch (how) {
      case Moves::all_reduce: all.bytes += 2 * bytes * (world - 1) / world; return;
      case Moves::all_gather:
      case Moves::reduce_scatter:
      case Moves::all_to_all: all.bytes += others; return;
      case Moves::broadcast:
      case Moves::point_to_point: all.bytes += bytes; return;
    }
  }
  const Sent& sent(Moves how) const { return sent_[static_cast<std::size_t>(how)]; }
  std::uint64_t sent_bytes() const {
    std::uint64_t all = 0;
    for (const Sent& each : sent_) all += each.bytes;
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
  std::array<Sent, kMovesNames.size()> sent_{};
  std::array<std::size_t, kHoldsNames.size()> held_{}, peaks_{};
  std::size_t total_ = 0, peak_ = 0;
};

}  // namespace shoal::train
