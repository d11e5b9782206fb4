// SPDX-License-Identifier: Apache-2.0
#include "comm/inquest.h"

#include <utility>

namespace shoal::comm {

bool Inquest::raise(const Alarmed& alarmed, Clock::time_point now) {
  if (alarm_) {
    if (alarm_->alarm < alarmed.alarm) alarm_ = alarmed;
    return false;
  }
  alarm_ = alarmed;
  ++number_;
  sequence_ = alarmed.sequence;
  deadline_ = now + kAnswerTime;
  return true;
}

void Inquest::answer(Report report) {
  if (running() && report.inquiry == number_) reports_[report.rank] = std::move(report);
}

void Inquest::left(std::int32_t rank, std::uint64_t finished) { left_[rank] = finished; }

bool Inquest::over(std::size_t world, Clock::time_point now) const {
  if (now >= deadline_) return true;
  if (again_) return false;
  std::size_t heard = left_.size();
  for (const auto& [rank, report] : reports_)
    if (report.inquiry == number_ && !left_.contains(rank)) ++heard;
  return heard >= world;
}

bool Inquest::ask_again(Clock::time_point now) {
  if (!again_ || now < *again_ || now >= deadline_) return false;
  again_.reset();
  ++number_;
  return true;
}

std::optional<Notice> Inquest::conclude_from(const std::vector<Witness>& witnesses, Clock::time_point now) {
  // For Alarm::slow only what the reports show counts, not the word of whom the alarm is from.
  const bool patient = alarm_->alarm == Alarm::mismatch && now < deadline_;
  std::optional<Notice> found = judge(witnesses, patient ? Alarm::slow : alarm_->alarm, alarm_->rank, alarm_->own);
  if (patient && !found) {
    again_ = now + kPause;
    return std::nullopt;
  }
  alarm_.reset();
  again_.reset();
  reports_.clear();
  return found;
}

std::vector<Witness> Inquest::hear(const std::vector<link::PeerIdentity>& peers) const {
  std::vector<Witness> witnesses;
  for (const link::PeerIdentity& peer : peers) {
    Witness& witness = witnesses.emplace_back(Witness{.who = peer});
    if (const auto gone = left_.find(peer.rank.value); gone != left_.end()) {
      witness.left = true;
      witness.report = Report{.finished = gone->second};
    } else if (const auto said = reports_.find(peer.rank.value); said != reports_.end()) {
      witness.report = said->second;
    }
  }
  return witnesses;
}

}  // namespace shoal::comm
