// SPDX-License-Identifier: Apache-2.0
// The root's side of an alarm: every rank is asked what it does, and once all have answered, or had the time to, somebody is to
// blame or nobody is. One inquiry at a time; what is raised meanwhile joins it. No I/O. One thread.
#pragma once

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

  // True: ask everybody with `inquiry()`. False: this alarm joined the inquiry that is under way.
  bool raise(const Alarmed& alarmed, Clock::time_point now);
  Inquiry inquiry() const { return {number_, sequence_}; }

  void answer(Report report);
  // A rank left in order; it counts as heard, now and in later inquiries.
  void left(std::int32_t rank, std::uint64_t finished);

  bool running() const { return alarm_.has_value(); }
  Clock::time_point deadline() const { return deadline_; }
  // Whether all of `peers` have been heard, or the time is up.
  bool over(std::size_t world, Clock::time_point now) const;
  // Ends it. `condition` says what is known of a rank that did not answer.
  template <typename F>
  std::optional<Notice> conclude(const std::vector<link::PeerIdentity>& peers, F&& condition) {
    std::vector<Witness> witnesses = hear(peers);
    for (Witness& each : witnesses)
      if (!each.report && !each.left) each.condition = condition(each.who);
    const Alarmed raised = *std::exchange(alarm_, std::nullopt);
    reports_.clear();
    return judge(witnesses, raised.alarm, raised.rank, raised.own);
  }

 private:
  std::vector<Witness> hear(const std::vector<link::PeerIdentity>& peers) const;

  std::uint32_t number_ = 0;
  std::uint64_t sequence_ = 0;
  std::optional<Alarmed> alarm_;  // the gravest of this inquiry
  Clock::time_point deadline_;
  std::map<std::int32_t, Report> reports_;
  std::map<std::int32_t, std::uint64_t> left_;  // collectives that the rank had finished
};

}  // namespace shoal::comm
