// SPDX-License-Identifier: Apache-2.0
#include "comm/root_service.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "comm/condition.h"
#include "comm/sealed_id.h"

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

Notice notice_of(const Status& why) {
  return {why.code(), why.culprit() ? std::max(-1, why.culprit()->value) : -1, std::string(why.text())};
}

// Whether it is this very rank that was counted, not a second one with its number.
bool is_in(const std::vector<link::PeerIdentity>& peers, const link::PeerIdentity& who) {
  if (who.rank.value < 0 || static_cast<std::size_t>(who.rank.value) >= peers.size()) return false;
  const link::PeerIdentity& counted = peers[static_cast<std::size_t>(who.rank.value)];
  return counted.process == who.process && counted.host == who.host;
}

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
    : doors_(std::move(options.doors)),
      address_(doors_.address()),
      communicator_key_(options.key),
      key_(bootstrap_key(options.key)),
      frees_port_(options.frees_port),
      stop_event_(std::move(stop_event)),
      stop_guard_(stop_event_.get()),
      last_news_(Clock::now()),
      accept_pause_(last_news_) {
  for (const link::Listener& each : doors_.listeners) door_guards_.emplace_back(each.descriptor.get());
}

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
    hear_upstream();
    expire();
    settle();
  }
  say_goodbye();
  strangers_.clear();
  members_.clear();
  upstream_.reset();
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
  if (doors_.listeners.empty() || now < accept_pause_) return false;
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
  if (upstream_ && upstream_->sleep_ms() >= 0) wake = std::min(wake, now + std::chrono::milliseconds(upstream_->sleep_ms()));
  for (const Member& member : members_)
    if (!is_known(member)) wake = std::min(wake, member.since + kRecordTime);
  if (inquest_.running()) wake = std::min(wake, inquest_.wake());
  return wake;
}

// Sleeps until something can be done; marks whose turn it is.
void RootService::wait() {
  const Clock::time_point now = Clock::now();
  polled_.clear();
  polled_.push_back({stop_event_.get(), POLLIN, 0});
  const bool open = accepting(now);
  for (const link::Listener& each : doors_.listeners) polled_.push_back({open ? each.descriptor.get() : -1, POLLIN, 0});
  for (const Stranger& stranger : strangers_) {
    const link::Wakeup wakeup = stranger.handshake.wakeup();
    polled_.push_back({wakeup.descriptor, wakeup.events, 0});
  }
  for (const Member& member : members_) {
    const link::Wakeup wakeup = member.channel.wakeup();
    polled_.push_back({wakeup.descriptor, wakeup.events, 0});
  }
  if (upstream_) upstream_->add_to(polled_);
  const auto sleep = std::chrono::ceil<std::chrono::milliseconds>(wake_time(now) - now);
  const int ready = poll(polled_.data(), polled_.size(), static_cast<int>(std::clamp<std::int64_t>(sleep.count(), 0, 3'600'000)));
  auto next = polled_.begin() + 1 + static_cast<std::ptrdiff_t>(doors_.listeners.size());
  for (Stranger& stranger : strangers_) stranger.ready = ready > 0 && (next++)->revents != 0;
  for (Member& member : members_) member.ready = ready > 0 && (next++)->revents != 0;
}

void RootService::accept_some() {
  for (const link::Listener& door : doors_.listeners)
    for (int i = 0; i < 64 && accepting(Clock::now()); ++i) {
      Result<std::optional<link::Descriptor>> stream = link::accept_stream(door);
      if (!stream.is_ok()) {
        accept_pause_ = Clock::now() + kAcceptPause;
        return;
      }
      if (!stream->has_value()) break;
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
  members_.remove_if([now](const Member& member) { return !is_known(member) && now >= member.since + kRecordTime; });
}

void RootService::handle(Member& member, const Message& message) {
  last_news_ = Clock::now();
  if (const auto* record = std::get_if<Record>(&message); record != nullptr && !member.who) return on(member, *record);
  if (const auto* records = std::get_if<Records>(&message); records != nullptr && !upstream_) return on(member, *records);
  if (!is_known(member)) return lost(member);
  if (const auto* notice = std::get_if<Notice>(&message)) return on(member, *notice);
  if (const auto* gave_up = std::get_if<GaveUp>(&message)) return on(member, *gave_up);
  if (const auto* abort = std::get_if<Abort>(&message)) return on(member, *abort);
  if (const auto* alarmed = std::get_if<Alarmed>(&message)) return on(member, *alarmed);
  if (const auto* report = std::get_if<Report>(&message)) return on(member, *report);
  if (const auto* bye = std::get_if<Bye>(&message)) return on(member, *bye);
  lost(member);
}

void RootService::on(Member& member, const Record& record) {
  member.who = record.self;
  member.same_process = record.lives_with_root;
  ++records_;
  if (complete_ || failure_) return refuse(member);
  if (upstream_ || (!record.upstream.empty() && !gathering_.world())) return pass_on(member, record);
  if (Status added = gathering_.add(record); !added.is_ok()) return fail_all(notice_of(added), nullptr);
  if (gathering_.complete()) finish_gathering();
}

// From another root service: the records of ranks that came to it.
void RootService::on(Member& member, const Records& records) {
  member.service = records.address;
  if (failure_) return tell(member, *failure_);
  for (const Record& record : records.records) {
    ++records_;
    if (record.lives_with_root && (!member.who || record.self.rank < member.who->rank)) member.who = record.self;
    if (complete_) continue;
    if (Status added = gathering_.add(record); !added.is_ok()) return fail_all(notice_of(added), nullptr);
    if (gathering_.complete()) finish_gathering();
  }
}

// Too late: it failed before, or everyone is in. The others go on undisturbed.
void RootService::refuse(Member& member) {
  if (failure_) return tell(member, *failure_);
  const std::int32_t rank = member.who->rank.value;
  const bool taken = rank >= 0 && rank < static_cast<std::int32_t>(peers_.size());
  tell(member, {Code::invalid_usage, std::max(-1, rank),
                fmt::format("{} comes too late: this unique id's communicator is complete with {} ranks{}; make a unique id for "
                            "every communicator",
                            describe(*member.who), peers_.size(),
                            taken ? ", among them " + describe(peers_[static_cast<std::size_t>(rank)]) : "")});
  member.left = true;  // it never belonged: its end is no death
}

void RootService::finish_gathering() { hand_out(gathering_.table()); }

void RootService::hand_out(Table table) {
  complete_ = true;
  if (frees_port_) close_port();
  peers_ = table.peers;
  table.root_rank = -1;
  for (const Member& member : members_)
    if (member.who && member.same_process && (table.root_rank < 0 || member.who->rank.value < table.root_rank))
      table.root_rank = member.who->rank.value;
  const Payload payload = std::make_shared<const std::vector<std::byte>>(encode(table));
  for (Member& member : members_)
    if (is_known(member) && !member.gone) {
      if (member.service || is_in(peers_, *member.who))
        member.channel.send(payload);
      else
        refuse(member);
    }
}

// The first rank to come says where the first service is; the others must say the same.
void RootService::pass_on(Member& member, const Record& record) {
  if (!passed_on_) {
    const link::Key& session = member.channel.session_key();
    const Result<UniqueId> first = unseal(std::as_bytes(std::span(record.upstream)), session, kUpstreamPurpose);
    if (!first.is_ok()) return lost(member);
    passed_on_ = record;
    upstream_.emplace(*first, address_);
  }
  Gathering both;  // finds what contradicts
  (void)both.add(*passed_on_).is_ok();
  if (Status same = record.self.rank == passed_on_->self.rank ? Status() : both.add(record); !same.is_ok())
    return fail_all(notice_of(same), nullptr);
  upstream_->forward(record);
}

void RootService::hear_upstream() {
  if (!upstream_) return;
  std::vector<Message> heard;
  const Status state = upstream_->progress(heard);
  for (const Message& message : heard) {
    last_news_ = Clock::now();
    if (const auto* table = std::get_if<Table>(&message); table != nullptr && !complete_ && !failure_) {
      if (table->root_rank >= 0) first_root_ = table->peers[static_cast<std::size_t>(table->root_rank)];
      hand_out(*table);
    } else if (const auto* notice = std::get_if<Notice>(&message)) {
      fail_all(*notice, nullptr, From::upstream);
    } else if (const auto* inquiry = std::get_if<Inquiry>(&message)) {
      ask_all(*inquiry);
    }
  }
  if (!state.is_ok()) fail_all(without_upstream(state), nullptr, From::upstream);
  for (Member& member : members_)
    if (!member.gone) member.channel.flush();
}

Notice RootService::without_upstream(const Status& why) const {
  if (!first_root_) return {Code::remote_error, -1, std::string(why.text())};
  return {Code::remote_error, first_root_->rank.value,
          fmt::format("{} died (it made the first unique id, at {})", describe(*first_root_), upstream_->address())};
}

void RootService::on(Member& member, const Notice& notice) {
  fail_all(member.service ? notice : relayed(*member.who, notice), &member);
}

// The table may have crossed it on its way: then this rank finds it before it looks for an answer.
void RootService::on(Member& member, const GaveUp& gave_up) {
  if (complete_ || failure_) return;
  if (!upstream_) return fail_all(gathering_.nobody_else_came(gave_up.waited_ms), nullptr);
  if (upstream_->reached()) return upstream_->send(gave_up);
  fail_all({Code::timeout, -1,
            fmt::format("the root service at {}, which {} came to, did not reach that of the first unique id at {} within {} ms",
                        address_, describe(*member.who), upstream_->address(), gave_up.waited_ms)},
           nullptr);
}

void RootService::on(Member& member, const Abort&) {
  if (member.who)
    fail_all({Code::remote_error, member.who->rank.value, describe(*member.who) + " aborted the communicator"}, &member);
}

// Alarms and answers go to the first service, by the one that their rank came to.
void RootService::on(Member& member, Alarmed alarmed) {
  if (!complete_ || failure_) return;
  if (!member.service) {
    alarmed.rank = member.who->rank.value;
    alarmed.own = relayed(*member.who, alarmed.own);
  }
  if (upstream_) return upstream_->send(alarmed);
  if (inquest_.raise(alarmed, Clock::now())) ask_all(inquest_.inquiry());
}

void RootService::on(Member& member, Report report) {
  if (!member.service) report.rank = member.who->rank.value;
  if (upstream_) return upstream_->send(report);
  inquest_.answer(std::move(report));
}

void RootService::on(Member& member, Bye bye) {
  if (!member.service || bye.rank < 0) member.left = member.gone = true;
  if (!member.service) bye.rank = member.who->rank.value;
  if (bye.rank < 0) return;
  if (upstream_) return upstream_->send(bye);
  inquest_.left(bye.rank, bye.finished);
}

void RootService::ask_all(const Inquiry& inquiry) {
  for (Member& each : members_)
    if (is_known(each) && !each.left && !each.gone) each.channel.send(inquiry);
}

// An inquiry ends with somebody to blame, or nobody.
void RootService::settle() {
  if (!inquest_.running()) return;
  const Clock::time_point now = Clock::now();
  if (inquest_.ask_again(now)) ask_all(inquest_.inquiry());
  if (!inquest_.over(peers_.size(), now)) return;
  const auto here = std::find_if(members_.begin(), members_.end(), [](const Member& each) { return each.same_process; });
  const std::string our_host = here != members_.end() && here->who ? here->who->host_id : std::string();
  const std::optional<Notice> notice = inquest_.conclude(peers_, now, [&](const link::PeerIdentity& who) {
    return who.host_id == our_host ? condition_of_process(who.pid) : std::string();
  });
  if (notice && !failure_) fail_all(*notice, nullptr);
  for (Member& member : members_)
    if (!member.gone) member.channel.flush();
}

// The connection ended, or what came is no message.
void RootService::lost(Member& member) {
  member.gone = true;
  if (!is_known(member) || member.left || (failure_ && !complete_)) return;
  last_news_ = Clock::now();
  const std::string what = complete_ ? " died" : " died while the communicator was being made";
  const std::string who = member.who ? describe(*member.who) : "the process that made the unique id at " + *member.service;
  const std::string also = member.who && member.service ? " (it made a unique id, at " + *member.service + ")" : "";
  fail_all({Code::remote_error, member.who ? member.who->rank.value : -1, who + what + also}, &member);
}

void RootService::fail_all(const Notice& notice, const Member* but, From from) {
  if (!failure_ && upstream_ && from == From::below) upstream_->send(notice);
  if (!failure_) failure_ = notice;
  if (frees_port_) close_port();
  for (Member& member : members_)
    if (&member != but && is_known(member) && !member.gone) tell(member, notice);
}

void RootService::tell(Member& member, const Notice& notice) {
  if (member.told || member.left) return;
  member.told = true;
  member.channel.send(notice);
}

void RootService::close_port() {
  door_guards_.clear();
  doors_.listeners.clear();
}

// The process ends (or its service is stopped): the ranks in it that did not leave are lost to the others; what remains of the
// others is told that the hub's silence means nothing. A service whose ranks have all left says so to the first one.
void RootService::say_goodbye() {
  if (stopping_.load()) {
    for (Member& member : members_) member.ready = true;
    hear_members();  // a "bye" that is still on its way is no death
    for (Member& member : members_)
      if (member.same_process && !member.gone) lost(member);
  }
  for (Member& member : members_)
    if (!member.gone) member.channel.send(Bye{});
  if (upstream_) upstream_->send(Bye{});
  const Clock::time_point end = Clock::now() + kGoodbyeTime;
  while (Clock::now() < end) {
    std::vector<pollfd> polled;
    for (Member& member : members_) {
      if (!member.gone) member.channel.progress();
      if (!member.gone && !member.channel.flushed() && !member.channel.closed())
        polled.push_back({member.channel.wakeup().descriptor, POLLOUT, 0});
    }
    if (upstream_) upstream_->flush();
    if (upstream_ && !upstream_->flushed()) upstream_->add_to(polled);
    if (polled.empty()) return;
    (void)poll(polled.data(), polled.size(), 10);
  }
}

}  // namespace shoal::comm
