// SPDX-License-Identifier: Apache-2.0
// Which of two ways of a call is the quicker one at present. What a machine does best changes while programs run (processes move
// to other cores, caches are shared or not), so now and then the other way is tried; and ranks tell each other what they
// measured, so that all choose alike from the same figures. Both ways must give the same bits.
//
// A call before which ranks tell each other begins at the same time everywhere: what it takes counts, not who was late. But calls
// that are run as planned need not meet, and may overlap with the next: a few in a row may take less each than one by itself.
#pragma once

#include <array>
#include <cstdint>

namespace shoal::engine {

class Quickest {
 public:
  enum class Way : std::uint8_t { planned, pulled };
  // Nanoseconds of a rank's calls each way since the last choice; 0: none.
  using Figures = std::array<std::uint32_t, 2>;

  // Another call begins: whether all ranks tell each other before it. If not it is run as planned.
  bool is_asked();
  // What this rank has to tell.
  Figures told() const;
  // What a rank told: of all ranks, this one too, in any order.
  void hear(const Figures& figures);
  // After all were heard.
  Way choose();
  // The call has ended.
  void took(Way way, std::uint64_t ns);

 private:
  static constexpr std::array<std::uint32_t, 2> kTries = {2, 1};  // the first call as planned makes its memory and links
  static constexpr std::uint32_t kHeld = 15;                      // planned calls in a row before which nobody tells
  static constexpr std::uint32_t kTrialHeld = 3;                  // of a trial, if they are short
  static constexpr std::uint32_t kShort = 1'000'000;              // nanoseconds
  static constexpr std::uint32_t kPatience = 32;  // calls before a way as quick is tried again; a slower one so much later

  static std::size_t at(Way way) { return static_cast<std::size_t>(way); }
  void learn();
  Way best() const { return figures_[at(Way::pulled)] < figures_[at(Way::planned)] ? Way::pulled : Way::planned; }
  Way next();

  std::array<std::uint32_t, 2> figures_{};  // nanoseconds of the slowest rank
  std::array<std::uint32_t, 2> tried_{};    // times, up to kTries
  std::array<std::uint64_t, 2> idle_{};     // calls since
  Figures asked_{}, heard_{};
  std::uint64_t held_ns_ = 0;  // of calls before which nobody told
  std::uint32_t held_calls_ = 0;
  std::uint32_t to_hold_ = 0;  // such calls to come
  bool is_held_ = false;       // this one is one
  Way last_ = Way::planned;
  bool has_changed_ = false;  // the last way has become slower than it was
};

}  // namespace shoal::engine
