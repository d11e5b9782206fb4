// SPDX-License-Identifier: Apache-2.0
// The root's side of an alarm: every rank is asked what it does, and once all have answered, or had the time to, somebody is to
// blame or nobody is. One inquiry at a time; what is raised meanwhile joins it. No I/O. One thread.
//
// A rank that makes another call than the rest shows it to them before it notes it for reports (the small-message path waits for
// nothing), and may lose its processor between the two. So a mismatch that no report explains is asked about again and again,
// until one does or the time is up.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "comm/messages.h"
#include "comm/report.h"
#include "comm/verdict.h"

namespace shoal::comm {

class Inquest {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kAnswerTime{1000};  // a process that runs at all answers within some ms
  static constexpr std::chrono::milliseconds kPause{10};         // before it is asked again: two or three slices of a scheduler

  // True: ask everybody with `inquiry()`. False: this alarm joined the inquiry that is under way.
  bool raise(const Alarmed& alarmed, Clock::time_point now);
  Inquiry inquiry() const { return {number_, sequence_}; }

  void answer(Report report);
  // A rank left in order; it counts as heard, now and in later inquiries.
  void left(std::int32_t rank, std::uint64_t finished);

  bool running() const { return alarm_.has_value(); }
  // When something is to be done next, whoever answers until then.
  Clock::time_point wake() const { return again_ ? std::min(*again_, deadline_) : deadline_; }
  // Whether all of `peers` have been heard, or the time is up.
  bool over(std::size_t world, Clock::time_point now) const;
  // True once after each pause: ask everybody with the new `inquiry()`.
  bool ask_again(Clock::time_point now);
  // Ends it, or begins a pause. `condition` says what is known of a rank that did not answer.
  template <typename F>
  std::optional<Notice> conclude(const std::vector<link::PeerIdentity>& peers, Clock::time_point now, F&& condition) {
    std::vector<Witness> witnesses = hear(peers);
    for (Witness& each : witnesses)
      if (!each.report && !each.left) each.condition = condition(each.who);
    return conclude_from(witnesses, now);
  }

 private:
  std::vector<Witness> hear(const std::vector<link::PeerIdentity>& peers) const;
  std::optional<Notice> conclude_from(const std::vector<Witness>& witnesses, Clock::time_point now);

  std::uint32_t number_ = 0;
  std::uint64_t sequence_ = 0;
  std::optional<Alarmed> alarm_;  // the gravest of this inquiry
  Clock::time_point deadline_;
  std::optional<Clock::time_point> again_;      // set during a pause: its end
  std::map<std::int32_t, Report> reports_;      // the last of each rank; one of an earlier round is better than none
  std::map<std::int32_t, std::uint64_t> left_;  // collectives that the rank had finished
};

}  // namespace shoal::comm
