// SPDX-License-Identifier: Apache-2.0
#include "comm/approach.h"

#include <algorithm>
#include <utility>

#include "comm/same_user.h"
#include "core/log.h"

namespace shoal::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kConnectTime = 5s;    // one attempt's, where there are other addresses
constexpr auto kHandshakeTime = 5s;  // one attempt's: whoever holds the port and keeps silent is not whom we look for
constexpr auto kStagger = 250ms;     // an address that would answer has done so
constexpr auto kFirstPause = 5ms;
constexpr auto kLongestPause = 200ms;
// Who refuses is gone; who keeps silent may be overrun by a large job's ranks, which all come at once.
constexpr auto kSilence = 30s;
constexpr std::int64_t kTheirRetries = 34;  // NCCL's own values, where only one of its two variables is set
constexpr std::int64_t kTheirSleep_ms = 100;

// Of one attempt.
Status too_late() { return fail(Code::timeout, "no answer"); }

std::chrono::milliseconds pause_after(std::int64_t rounds, const Approach& plan) {
  if (plan.retries >= 0 || plan.retry_sleep_ms >= 0)
    return std::chrono::milliseconds(rounds * (plan.retry_sleep_ms >= 0 ? plan.retry_sleep_ms : kTheirSleep_ms));
  return std::min<std::chrono::milliseconds>(kFirstPause * (std::int64_t{1} << std::min<std::int64_t>(rounds - 1, 10)),
                                             kLongestPause);
}

std::string list_of(const std::vector<std::string>& addresses) {
  std::string list;
  for (const std::string& each : addresses) list += (list.empty() ? "" : ", ") + each;
  return list;
}

// What fails here is not the other side's fault.
bool lacks_descriptors(const Status& why) {
  return why.text().ends_with(errno_text(EMFILE)) || why.text().ends_with(errno_text(ENFILE));
}

}  // namespace

Approaching::Approaching(Approach plan, const Deadline& deadline)
    : plan_(std::move(plan)),
      deadline_(deadline),
      patience_(plan_.patience),
      silence_(plan_.patience.count() > 0 ? std::max<std::chrono::milliseconds>(plan_.patience, kSilence) : 0ms),
      stagger_(0ms),
      last_(plan_.addresses.size(), too_late()) {
  begin_round();
}

void Approaching::begin_round() {
  pause_.reset();
  next_ = 0;
  some_silent_ = false;
  start_next();
}

void Approaching::start_next() {
  while (next_ < plan_.addresses.size()) {
    const std::size_t place = next_++;
    const std::string& address = plan_.addresses[place];
    Result<link::Descriptor> stream = plan_.local ? link::start_connect_local(address) : link::start_connect_tcp(address);
    if (!stream.is_ok()) {
      note(place, stream.status());
      continue;
    }
    const bool several = plan_.addresses.size() > 1 || plan_.patience.count() > 0;
    attempts_.push_back(
        {place, stream.take(), std::nullopt, Deadline(several ? std::chrono::milliseconds(kConnectTime) : 0ms), Deadline(0ms)});
    stagger_ = Deadline(kStagger);
    return;
  }
}

Result<std::optional<Channel>> Approaching::progress() {
  if (pause_ && pause_->passed() && !deadline_.passed()) begin_round();
  for (auto attempt = attempts_.begin(); attempt != attempts_.end();) {
    const Status state = step(*attempt);
    if (state.is_ok()) {
      const std::string& address = plan_.addresses[attempt->place];
      if (plan_.addresses.size() > 1)
        log::info(log::Subsystem::bootstrap, plan_.rank, "bootstrap: {} is reached at {}", plan_.whom, address);
      return std::optional(Channel(std::move(*attempt->handshake), Side::client, plan_.max_payload));
    }
    if (state.code() == Code::in_progress) {
      ++attempt;
      continue;
    }
    note(attempt->place, state);
    attempt = attempts_.erase(attempt);
  }
  if (!pause_ && (attempts_.empty() || stagger_.passed())) start_next();
  if (deadline_.passed())
    return fail(Code::timeout, "{} at {} was not reached within {} ms: {}", plan_.whom, list_of(plan_.addresses),
                plan_.timeout.count(), reasons());
  if (!pause_ && attempts_.empty())
    if (std::optional<Status> end = end_round()) return *std::move(end);
  return std::optional<Channel>();
}

// Ok: proven. in_progress: not yet.
Status Approaching::step(Attempt& attempt) {
  const std::string& address = plan_.addresses[attempt.place];
  if (!attempt.handshake) {
    const Result<bool> connected = link::connect_finished(attempt.stream, address);
    if (!connected.is_ok()) return connected.status();
    if (!*connected) return attempt.connect.passed() ? too_late() : Status(Code::in_progress, "connecting");
    if (plan_.local && !is_same_user(attempt.stream.get()))
      return fail(Code::remote_error, "local socket '{}' belongs to another user", address);
    attempt.handshake.emplace(link::Handshake::client(std::move(attempt.stream), plan_.key, plan_.hello));
    attempt.proof = Deadline(kHandshakeTime);
  }
  const Result<bool> done = attempt.handshake->progress();
  if (!done.is_ok()) return done.status();
  if (*done) return {};
  return attempt.proof.passed() ? too_late() : Status(Code::in_progress, "shaking hands");
}

void Approaching::note(std::size_t place, const Status& why) {
  some_silent_ |= why.code() == Code::timeout;
  if (rounds_ == 0 && plan_.addresses.size() > 1)
    log::info(log::Subsystem::bootstrap, plan_.rank, "bootstrap: {} is not reached at {} yet: {}", plan_.whom,
              plan_.addresses[place], why.text());
  if (why.code() != Code::timeout) last_[place] = why;  // says more than silence
}

// All addresses have failed: a pause before the next round, or the end.
std::optional<Status> Approaching::end_round() {
  ++rounds_;
  const bool counted = plan_.retries >= 0 || plan_.retry_sleep_ms >= 0;
  const bool over = counted        ? rounds_ > (plan_.retries >= 0 ? plan_.retries : kTheirRetries)
                    : some_silent_ ? silence_.passed()
                                   : patience_.passed();
  if (over) {
    const bool here = std::any_of(last_.begin(), last_.end(), lacks_descriptors);
    return fail(here ? Code::system_error : Code::remote_error, "{} at {} cannot be reached: {}", plan_.whom,
                list_of(plan_.addresses), reasons());
  }
  pause_ = Deadline(std::max<std::chrono::milliseconds>(pause_after(rounds_, plan_), 1ms));
  return std::nullopt;
}

std::string Approaching::reasons() const {
  if (last_.size() == 1) return std::string(last_.front().text());
  std::string all;
  for (std::size_t i = 0; i < last_.size(); ++i)
    all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", plan_.addresses[i], last_[i].text());
  return all;
}

void Approaching::add_to(std::vector<pollfd>& polled) const {
  for (const Attempt& attempt : attempts_) {
    const link::Wakeup wakeup =
        attempt.handshake ? attempt.handshake->wakeup() : link::Wakeup{attempt.stream.get(), POLLOUT, false};
    polled.push_back({wakeup.descriptor, wakeup.events, 0});
  }
}

int Approaching::sleep_ms() const {
  int longest = deadline_.poll_ms(1s);
  if (pause_) return std::max(1, pause_->poll_ms(std::chrono::milliseconds(longest)));
  if (next_ < plan_.addresses.size()) longest = stagger_.poll_ms(std::chrono::milliseconds(longest));
  return longest;
}

Result<Channel> approach(const Approach& plan, const Deadline& deadline) {
  Approaching under_way(plan, deadline);
  std::vector<pollfd> polled;
  while (true) {
    Result<std::optional<Channel>> reached = under_way.progress();
    if (!reached.is_ok()) return reached.status();
    if (reached->has_value()) return std::move(**reached);
    polled.clear();
    under_way.add_to(polled);
    (void)poll(polled.data(), polled.size(), under_way.sleep_ms());
  }
}

}  // namespace shoal::comm
