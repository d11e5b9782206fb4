// SPDX-License-Identifier: Apache-2.0
#include "comm/root_service.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "comm/condition.h"

namespace shoal::comm {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kStrangers = 64;             // at a time, beyond the ranks that are still awaited
constexpr std::size_t kRanksBeforeTheFirst = 256;  // awaited while no record has said how many there are
constexpr auto kProofTime = 5s;                    // from accept to a proven key
constexpr auto kRecordTime = 30s;                  // from a proven key to the record; a proven peer may be a slow one
constexpr auto kEvictionAge = 500ms;  // a stranger this old makes room when all places are taken: a rank needs a few ms
constexpr auto kAcceptPause = 50ms;   // when accept fails: no descriptor is left, and trying at once would spin
constexpr auto kLinger = 10s;         // after a failure, for ranks that come late and should learn of it
constexpr auto kAbandoned = 1h;       // nobody ever came
constexpr auto kGoodbyeTime = 200ms;  // for the last messages when the process ends

// Failures that concern all ranks alike pass as they are; what went wrong inside one rank is a remote error for the others.
Notice relayed(const link::PeerIdentity& who, const Notice& notice) {
  const bool common = notice.code == Code::timeout || notice.code == Code::invalid_usage || notice.code == Code::remote_error;
  if (common) return notice;
  return {Code::remote_error, who.rank.value, fmt::format("{} failed: {}", describe(who), notice.text)};
}

}  // namespace

link::Key bootstrap_key(const link::Key& communicator) { return link::derive_key(communicator.bytes, kBootstrapHello); }

Result<std::unique_ptr<RootService>> RootService::make(RootOptions options) {
  link::Descriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.is_open()) return fail(Code::system_error, "eventfd: {}", errno_text(errno));
  return std::unique_ptr<RootService>(new RootService(std::move(options), std::move(event)));
}

RootService::RootService(RootOptions options, link::Descriptor stop_event)
    : listener_(std::move(options.listener)),
      listener_guard_(listener_.descriptor.get()),
      communicator_key_(options.key),
      key_(bootstrap_key(options.key)),
      frees_port_(options.frees_port),
      stop_event_(std::move(stop_event)),
      stop_guard_(stop_event_.get()),
      last_news_(Clock::now()),
      accept_pause_(last_news_) {}

void RootService::stop() {
  const std::scoped_lock lock(stop_mutex_);
  stopping_.store(true);  // seen by run() after the event below wakes it
  if (!stop_event_.is_open()) return;
  const std::uint64_t one = 1;
  (void)!write(stop_event_.get(), &one, sizeof one);
}

void RootService::run() {
  while (!finished()) {
    wait();
    accept_some();
    shake_hands();
    hear_members();
    expire();
    settle();
  }
  if (stopping_.load()) say_goodbye();
  strangers_.clear();
  members_.clear();
  close_port();
  const std::scoped_lock lock(stop_mutex_);
  stop_guard_ = {};
  stop_event_.reset();
}

bool RootService::finished() const {
  if (stopping_.load()) return true;
  if (!members_.empty()) return false;
  if (failure_) {
    const bool all_know = gathering_.world() && records_ >= gathering_.world()->value;
    return all_know || frees_port_ || Clock::now() >= last_news_ + kLinger;
  }
  return complete_ || Clock::now() >= last_news_ + kAbandoned;
}

std::size_t RootService::places() const {
  const bool unknown = !gathering_.world() && !failure_;
  return kStrangers + (unknown ? kRanksBeforeTheFirst : static_cast<std::size_t>(std::max(0, gathering_.missing())));
}

bool RootService::accepting(Clock::time_point now) const {
  if (!listener_.descriptor.is_open() || now < accept_pause_) return false;
  return strangers_.size() < places() || now >= strangers_.front().since + kEvictionAge;
}

RootService::Clock::time_point RootService::wake_time(Clock::time_point now) const {
  Clock::time_point wake = now + kAbandoned;
  if (members_.empty()) wake = std::min(wake, last_news_ + (failure_ ? Clock::duration(kLinger) : Clock::duration(kAbandoned)));
  if (now < accept_pause_) wake = std::min(wake, accept_pause_);
  if (!strangers_.empty()) {
    const bool full = strangers_.size() >= places() && now < strangers_.front().since + kEvictionAge;
    wake = std::min(wake, strangers_.front().since + (full ? Clock::duration(kEvictionAge) : Clock::duration(kProofTime)));
  }
  for (const Member& member : members_)
    if (!member.who) wake = std::min(wake, member.since + kRecordTime);
  if (inquest_.running()) wake = std::min(wake, inquest_.deadline());
  return wake;
}

// Sleeps until something can be done; marks whose turn it is.
void RootService::wait() {
  const Clock::time_point now = Clock::now();
  polled_.clear();
  polled_.push_back({stop_event_.get(), POLLIN, 0});
  polled_.push_back({accepting(now) ? listener_.descriptor.get() : -1, POLLIN, 0});
  for (const Stranger& stranger : strangers_) {
    const link::Wakeup wakeup = stranger.handshake.wakeup();
    polled_.push_back({wakeup.descriptor, wakeup.events, 0});
  }
  for (const Member& member : members_) {
    const link::Wakeup wakeup = member.channel.wakeup();
    polled_.push_back({wakeup.descriptor, wakeup.events, 0});
  }
  const auto sleep = std::chrono::ceil<std::chrono::milliseconds>(wake_time(now) - now);
  const int ready = poll(polled_.data(), polled_.size(), static_cast<int>(std::clamp<std::int64_t>(sleep.count(), 0, 3'600'000)));
  auto next = polled_.begin() + 2;
  for (Stranger& stranger : strangers_) stranger.ready = ready > 0 && (next++)->revents != 0;
  for (Member& member : members_) member.ready = ready > 0 && (next++)->revents != 0;
}

void RootService::accept_some() {
  for (int i = 0; i < 64 && accepting(Clock::now()); ++i) {
    Result<std::optional<link::Descriptor>> stream = link::accept_stream(listener_);
    if (!stream.is_ok()) {
      accept_pause_ = Clock::now() + kAcceptPause;
      return;
    }
    if (!stream->has_value()) return;
    if (strangers_.size() >= places()) strangers_.pop_front();
    ForkGuard guard((*stream)->get());
    strangers_.push_back({link::Handshake::server(std::move(**stream), key_), std::move(guard), Clock::now(), true});
  }
}

void RootService::shake_hands() {
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    if (!stranger->ready) {
      ++stranger;
      continue;
    }
    Result<bool> done = stranger->handshake.progress();
    if (done.is_ok() && !*done) {
      ++stranger;
      continue;
    }
    if (done.is_ok()) admit(std::move(stranger->handshake));
    stranger = strangers_.erase(stranger);
  }
}

void RootService::admit(link::Handshake shaken) {
  if (!std::ranges::equal(shaken.hello(), std::as_bytes(std::span(kBootstrapHello)))) return;
  last_news_ = Clock::now();
  members_.emplace_back(std::move(shaken)).since = last_news_;
}

void RootService::hear_members() {
  for (Member& member : members_) {
    if (!member.ready) continue;
    member.channel.progress();
    while (!member.gone) {
      const Result<std::optional<std::vector<std::byte>>> payload = member.channel.next();
      if (payload.is_ok() && !payload->has_value()) break;
      Result<Message> message = payload.is_ok() ? decode(**payload) : payload.status();
      if (message.is_ok())
        handle(member, *message);
      else
        lost(member);
    }
    if (member.channel.closed() && !member.gone) lost(member);
  }
  // What was said to others in this round leaves at once. Only writes: what is read must be heard, above.
  for (Member& member : members_)
    if (!member.gone) member.channel.flush();
  members_.remove_if([](const Member& member) { return member.gone; });
}

void RootService::expire() {
  const Clock::time_point now = Clock::now();
  while (!strangers_.empty() && now >= strangers_.front().since + kProofTime) strangers_.pop_front();
  members_.remove_if([now](const Member& member) { return !member.who && now >= member.since + kRecordTime; });
}

void RootService::handle(Member& member, const Message& message) {
  last_news_ = Clock::now();
  if (const auto* record = std::get_if<Record>(&message); record != nullptr && !member.who) return on(member, *record);
  if (!member.who) return lost(member);
  if (const auto* notice = std::get_if<Notice>(&message)) return on(member, *notice);
  if (const auto* gave_up = std::get_if<GaveUp>(&message)) return on(member, *gave_up);
  if (const auto* abort = std::get_if<Abort>(&message)) return on(member, *abort);
  if (const auto* alarmed = std::get_if<Alarmed>(&message)) return on(member, *alarmed);
  if (const auto* report = std::get_if<Report>(&message)) return inquest_.answer(member.who->rank.value, *report);
  if (const auto* bye = std::get_if<Bye>(&message)) return on(member, *bye);
  lost(member);
}

void RootService::on(Member& member, const Record& record) {
  member.who = record.self;
  member.same_process = record.lives_with_root;
  ++records_;
  if (complete_ || failure_) return refuse(member, record);
  if (Status added = gathering_.add(record); !added.is_ok())
    return fail_all({added.code(), added.culprit() ? std::max(-1, added.culprit()->value) : -1, std::string(added.text())},
                    nullptr);
  if (gathering_.complete()) finish_gathering();
}

// Too late: it failed before, or everyone is in. The others go on undisturbed.
void RootService::refuse(Member& member, const Record& record) {
  if (failure_) return tell(member, *failure_);
  const std::vector<link::PeerIdentity> peers = gathering_.table().peers;
  const std::int32_t rank = record.self.rank.value;
  const bool taken = rank >= 0 && rank < static_cast<std::int32_t>(peers.size());
  tell(member, {Code::invalid_usage, std::max(-1, rank),
                fmt::format("{} comes too late: this unique id's communicator is complete with {} ranks{}; make a unique id for "
                            "every communicator",
                            describe(record.self), peers.size(),
                            taken ? ", among them " + describe(peers[static_cast<std::size_t>(rank)]) : "")});
  member.left = true;  // it never belonged: its end is no death
}

void RootService::finish_gathering() {
  complete_ = true;
  if (frees_port_) close_port();
  Table table = gathering_.table();
  for (const Member& member : members_)
    if (member.who && member.same_process && (table.root_rank < 0 || member.who->rank.value < table.root_rank))
      table.root_rank = member.who->rank.value;
  const Payload payload = std::make_shared<const std::vector<std::byte>>(encode(table));
  for (Member& member : members_)
    if (member.who && !member.gone) member.channel.send(payload);
}

void RootService::on(Member& member, const Notice& notice) { fail_all(relayed(*member.who, notice), &member); }

// The table may have crossed it on its way: then this rank finds it before it looks for an answer.
void RootService::on(Member&, const GaveUp& gave_up) {
  if (!complete_ && !failure_) fail_all(gathering_.nobody_else_came(gave_up.waited_ms), nullptr);
}

void RootService::on(Member& member, const Abort&) {
  fail_all({Code::remote_error, member.who->rank.value, describe(*member.who) + " aborted the communicator"}, &member);
}

void RootService::on(Member& member, const Alarmed& alarmed) {
  if (!complete_ || failure_) return;
  const Alarmed raised{alarmed.alarm, alarmed.sequence, relayed(*member.who, alarmed.own)};
  if (!inquest_.raise(raised, member.who->rank.value, Clock::now())) return;
  for (Member& each : members_)
    if (each.who && !each.left && !each.gone) each.channel.send(inquest_.inquiry());
}

void RootService::on(Member& member, const Bye& bye) {
  member.left = member.gone = true;
  inquest_.left(member.who->rank.value, bye.finished);
}

// An inquiry ends with somebody to blame, or nobody.
void RootService::settle() {
  if (!inquest_.running()) return;
  const std::vector<link::PeerIdentity> peers = gathering_.table().peers;
  if (!inquest_.over(peers.size(), Clock::now())) return;
  const auto here = std::find_if(members_.begin(), members_.end(), [](const Member& each) { return each.same_process; });
  const std::string our_host = here != members_.end() && here->who ? here->who->host_id : std::string();
  const std::optional<Notice> notice = inquest_.conclude(peers, [&](const link::PeerIdentity& who) {
    return who.host_id == our_host ? condition_of_process(who.pid) : std::string();
  });
  if (notice && !failure_) fail_all(*notice, nullptr);
  for (Member& member : members_)
    if (!member.gone) member.channel.flush();
}

// The connection ended, or what came is no message.
void RootService::lost(Member& member) {
  member.gone = true;
  if (!member.who || member.left || (failure_ && !complete_)) return;
  last_news_ = Clock::now();
  fail_all({Code::remote_error, member.who->rank.value,
            describe(*member.who) + (complete_ ? " died" : " died while the communicator was being made")},
           &member);
}

void RootService::fail_all(const Notice& notice, const Member* but) {
  if (!failure_) failure_ = notice;
  if (frees_port_) close_port();
  for (Member& member : members_)
    if (&member != but && member.who && !member.gone) tell(member, notice);
}

void RootService::tell(Member& member, const Notice& notice) {
  if (member.told || member.left) return;
  member.told = true;
  member.channel.send(notice);
}

void RootService::close_port() {
  listener_guard_ = {};
  listener_.descriptor.reset();
}

// The process ends (or its service is stopped): the ranks in it that did not leave are lost to the others; what remains of the
// others is told that the hub's silence means nothing.
void RootService::say_goodbye() {
  for (Member& member : members_) member.ready = true;
  hear_members();  // a "bye" that is still on its way is no death
  for (Member& member : members_)
    if (member.same_process && !member.gone) lost(member);
  const Clock::time_point end = Clock::now() + kGoodbyeTime;
  for (Member& member : members_)
    if (!member.gone) member.channel.send(Bye{});
  while (Clock::now() < end) {
    std::vector<pollfd> polled;
    for (Member& member : members_) {
      if (!member.gone) member.channel.progress();
      if (!member.gone && !member.channel.flushed() && !member.channel.closed())
        polled.push_back({member.channel.wakeup().descriptor, POLLOUT, 0});
    }
    if (polled.empty()) return;
    (void)poll(polled.data(), polled.size(), 10);
  }
}

}  // namespace shoal::comm
