// SPDX-License-Identifier: Apache-2.0
#include "comm/regroup.h"

#include <poll.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "comm/approach.h"
#include "comm/bootstrap.h"
#include "comm/deadline.h"
#include "comm/doors.h"
#include "comm/knocking.h"
#include "comm/messages.h"
#include "comm/root_connection.h"
#include "comm/wire.h"
#include "link/hello.h"
#include "link/interfaces.h"

namespace shoal::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kRefusals = 3s;  // a leader's listener is open as long as its communicator lives: who refuses for so long is gone
constexpr auto kMistakeTime = 5s;  // a regrouping that has failed waits so long for the rest, who would else wait for it
constexpr auto kLossTime = 1s;     // the same after a loss, of which the others hear by the parent's control plane, too
constexpr auto kAnswerTime = 2s;   // after a member's deadline: the leader, whose own passes then, knows who is missing
constexpr auto kGrace = 300ms;     // a rank that has its answer may leave the parent before the others have theirs
constexpr auto kFlushTime = 1s;
constexpr auto kLook = 50ms;  // how often trouble is asked for
constexpr int kNamedMissing = 16;

std::uint64_t digest_of(const std::vector<Rank>& members) {
  ByteWriter text;
  for (const Rank each : members) text.signed_number(each.value);
  const link::Key digest = link::derive_key(text.take(), "shoal regroup: members");
  return ByteReader(digest.bytes).number<std::uint64_t>();
}

UniqueId id_of_child(const Placement& placement, std::int32_t colour, const link::Key& parent) {
  ByteWriter material;
  material.raw(parent.bytes);
  material.raw(placement.nonce.bytes);
  material.signed_number(colour);
  UniqueId id;
  id.addresses = UniqueId::fit(link::addresses_in(placement.root_address));
  id.key = link::derive_key(material.take(), "shoal regroup: child");
  const link::Key number = link::derive_key(id.key.bytes, "shoal regroup: communicator");
  id.communicator = ByteReader(number.bytes).number<std::uint64_t>();
  return id;
}

void wait(std::vector<pollfd>& polled, const Deadline& deadline) {
  (void)poll(polled.data(), polled.size(), deadline.poll_ms(kLook));
}

pollfd to_poll(const link::Wakeup& wakeup) { return {wakeup.descriptor, wakeup.events, 0}; }

// The leader's side: gathers claims until all members' are in, then answers everyone.
class Leader {
 public:
  Leader(const Regrouping& wish, const Family& family, Claim own)
      : wish_(wish), family_(family), members_(own.members), knocking_(family.peers) {
    claims_.emplace(family.self, std::move(own));
    if (!wish.mistake.is_ok()) fail_all(for_others(family.self, wish.mistake), kMistakeTime);
  }

  // This rank's own placement.
  Result<Placement> lead(const Deadline& deadline, const std::function<Status()>& trouble) {
    Status ended;
    while (claims_.size() < wish_.members.size()) {
      const Status bad = trouble();
      if (!bad.is_ok()) fail_all(for_others(family_.self, bad), kLossTime);
      if (!bad.is_ok() && bad.code() != Code::remote_error) {
        ended = bad;  // here, now
        break;
      }
      if (deadline.passed()) {
        fail_all(missing(), kLossTime);
        break;
      }
      if (const std::optional<Rank> ended_rank = knocking_.progress(absent())) fail_all(gone(*ended_rank), kLossTime);
      if (failure_ && patience_->passed()) break;
      receive();
      for (auto guest = guests_.begin(); guest != guests_.end();)
        guest = hear(guest->first, guest->second) ? std::next(guest) : guests_.erase(guest);
      if (claims_.size() < wish_.members.size()) sleep(deadline);
    }
    if (!failure_) {
      place_all();
    } else {
      for (auto& [from, guest] : guests_) tell(guest, to_notice(*failure_));
    }
    flush();
    if (!ended.is_ok()) return ended;
    if (failure_) return *failure_;
    return own_;
  }

 private:
  struct Guest {
    explicit Guest(link::Handshake shaken) : channel(std::move(shaken), Side::server, kMaxRegrouping) {}
    Channel channel;
    bool heard = false;  // its claim, or its mistake
    bool told = false;
  };

  bool is_member(Rank rank) const { return std::ranges::binary_search(wish_.members, rank.value, {}, &Rank::value); }
  std::string name_of(Rank rank) const { return describe(family_.peers[static_cast<std::size_t>(rank.value)]); }

  // What one rank's mistake or end is for the others.
  Status for_others(Rank culprit, const Status& why) const {
    if (why.code() == Code::remote_error) return why;
    return {Code::remote_error, fmt::format("{}: {} failed: {}", wish_.name, name_of(culprit), why.text()), culprit};
  }

  // The first failure counts. The regrouping goes on for a while, so that those who are on their way are told.
  void fail_all(Status why, std::chrono::milliseconds patience) {
    if (failure_) return;
    failure_ = std::move(why);
    patience_.emplace(patience);
  }

  void tell(Guest& guest, const Message& message) {
    if (std::exchange(guest.told, true)) return;
    guest.channel.send(message);
    guest.channel.progress();
  }

  // Of two connections of a rank the newer counts: it has given up the older. But who was answered comes for the next regrouping.
  void receive() {
    family_.switchboard.progress();
    const auto unanswered = [this](Rank from) { return !guests_.contains(from) || !guests_.at(from).told; };
    for (link::Switchboard::Visitor& visitor : family_.switchboard.take_visitors(unanswered)) {
      claims_.erase(visitor.from);
      guests_.insert_or_assign(visitor.from, Guest(std::move(visitor.shaken)));
    }
  }

  // False: forget this guest.
  bool hear(Rank from, Guest& guest) {
    guest.channel.progress();
    if (guest.heard) {
      if (!guest.channel.closed() || guest.told) return true;
      fail_all(gone(from), kLossTime);
      return true;
    }
    const Result<std::optional<std::vector<std::byte>>> payload = guest.channel.next();
    if (!payload.is_ok()) return false;
    if (!payload->has_value()) return !guest.channel.closed();
    const Result<Message> message = decode(**payload);
    if (!message.is_ok()) return false;
    guest.channel.progress();
    return understand(from, guest, *message);
  }

  bool understand(Rank from, Guest& guest, const Message& message) {
    if (const auto* mistake = std::get_if<Notice>(&message); mistake != nullptr && is_member(from)) {
      guest.heard = true;
      claims_.try_emplace(from);
      fail_all(for_others(from, to_status(*mistake)), kMistakeTime);
      tell(guest, to_notice(*failure_));
      return true;
    }
    const auto* claim = std::get_if<Claim>(&message);
    if (claim == nullptr || claim->rank != from || guest.channel.closed()) return false;  // closed: it has given up long ago
    guest.heard = true;
    if (claim->members != members_ || !is_member(from)) {
      const Status why = disagreement(from);
      tell(guest, to_notice(why));
      if (is_member(from)) fail_all(why, kMistakeTime);
    }
    if (is_member(from)) claims_.insert_or_assign(from, *claim);
    if (failure_) tell(guest, to_notice(*failure_));
    return true;
  }

  Status disagreement(Rank from) const {
    return {Code::invalid_usage,
            fmt::format("{}: {} and {} disagree about which ranks take part: all must make the same call, with the same ranks "
                        "excluded",
                        wish_.name, name_of(family_.self), name_of(from)),
            from};
  }

  Status gone(Rank rank) const {
    return {Code::remote_error, fmt::format("{}: {} died or left while the others waited", wish_.name, name_of(rank)), rank};
  }

  std::vector<Rank> absent() const {
    std::vector<Rank> ranks;
    std::ranges::copy_if(wish_.members, std::back_inserter(ranks), [this](Rank each) { return !claims_.contains(each); });
    return ranks;
  }

  Status missing() const {
    std::string names;
    int named = 0;
    const std::vector<Rank> ranks = absent();
    for (const Rank each : ranks)
      if (++named <= kNamedMissing) names += (names.empty() ? "" : ", ") + std::to_string(each.value);
    return {Code::timeout,
            fmt::format("{}: only {} of {} ranks came within {} ms; missing: {}{}", wish_.name, claims_.size(),
                        wish_.members.size(), wish_.timeout.count(), names, named > kNamedMissing ? ", ..." : ""),
            ranks.empty() ? std::optional<Rank>() : ranks.front()};
  }

  void place_all() {
    std::map<std::int32_t, std::vector<const Claim*>> children;
    for (const auto& [from, claim] : claims_) children[claim.colour].push_back(&claim);
    const link::Key nonce = link::random_key();
    for (auto& [colour, claims] : children) {
      std::ranges::stable_sort(claims, {}, &Claim::key);
      for (std::size_t i = 0; i < claims.size(); ++i) {
        Placement placement;
        if (colour != kNoColour)
          placement = {Rank{static_cast<std::int32_t>(i)}, World{static_cast<std::int32_t>(claims.size())},
                       claims.front()->root_address, nonce};
        if (claims[i]->rank == family_.self)
          own_ = placement;
        else
          tell(guests_.at(claims[i]->rank), placement);
      }
    }
  }

  void sleep(const Deadline& deadline) const {
    std::vector<link::Wakeup> wakeups;
    family_.switchboard.wakeups(wakeups);
    std::vector<pollfd> polled;
    for (const link::Wakeup& each : wakeups)
      if (each.descriptor >= 0) polled.push_back(to_poll(each));
    for (const auto& [from, guest] : guests_) polled.push_back(to_poll(guest.channel.wakeup()));
    wait(polled, deadline);
  }

  void flush() {
    const Deadline deadline{kFlushTime};
    while (!deadline.passed()) {
      std::vector<pollfd> polled;
      for (auto& [from, guest] : guests_) {
        guest.channel.progress();
        if (!guest.channel.flushed() && !guest.channel.closed())
          polled.push_back({guest.channel.wakeup().descriptor, POLLOUT, 0});
      }
      if (polled.empty()) return;
      wait(polled, deadline);
    }
  }

  const Regrouping& wish_;
  const Family& family_;
  const std::uint64_t members_;
  std::map<Rank, Guest> guests_;
  std::map<Rank, Claim> claims_;  // of members; one that made a mistake has an empty one
  Knocking knocking_;
  Placement own_;
  std::optional<Status> failure_;
  std::optional<Deadline> patience_;  // once it has failed
};

// The others' side.
class Member {
 public:
  Member(const Regrouping& wish, const Family& family)
      : wish_(wish), leader_(family.peers[static_cast<std::size_t>(wish.members.front().value)]) {
    hello_ = link::Hello{family.communicator, family.self, leader_.rank, 0, link::Switchboard::kVisit}.encode();
    way_.whom = describe(leader_);
    for (const std::string& each : link::addresses_in(leader_.address))
      for (std::string& scoped : link::with_own_scopes(each, link::scope_of(each))) way_.addresses.push_back(std::move(scoped));
    way_.key = family.key;
    way_.hello = hello_;
    way_.max_payload = kMaxRegrouping;
    way_.timeout = wish.timeout;
    way_.patience = kRefusals;
  }

  Result<Placement> follow(const Claim& claim, const Deadline& deadline, const std::function<Status()>& trouble) const {
    Result<Channel> channel = approach(way_, deadline);
    if (deadline.interrupted()) return trouble();
    if (!channel.is_ok()) return lost(channel.status());
    channel->send(claim);
    Result<std::optional<Message>> answer = hear(*channel, deadline);
    if (answer.is_ok() && !answer->has_value()) {
      const Status bad = trouble();
      if (!bad.is_ok() && bad.code() != Code::remote_error) return bad;
      answer = hear(*channel, Deadline(bad.is_ok() ? kAnswerTime : kGrace));
      if (!bad.is_ok() && answer.is_ok() && !answer->has_value()) return bad;
    }
    if (!answer.is_ok()) return lost(answer.status());
    if (!answer->has_value())
      return Status(Code::timeout,
                    fmt::format("{}: no answer from {} within {} ms", wish_.name, describe(leader_), wish_.timeout.count()),
                    leader_.rank);
    if (const auto* notice = std::get_if<Notice>(&**answer)) return to_status(*notice);
    if (const auto* placement = std::get_if<Placement>(&**answer)) return *placement;
    return fail(Code::internal_error, "{}: unexpected message {} from {}", wish_.name, (*answer)->index(), describe(leader_));
  }

  // For some seconds: who comes later than that waits for this rank until the deadline.
  void tell_mistake() const {
    const Deadline deadline{kMistakeTime};
    Result<Channel> channel = approach(way_, deadline);
    if (!channel.is_ok()) return;
    channel->send(to_notice(wish_.mistake));
    (void)hear(*channel, deadline);  // or this rank's next regrouping would overtake this one
  }

 private:
  static Result<std::optional<Message>> hear(Channel& channel, const Deadline& deadline) {
    while (true) {
      channel.progress();
      const Result<std::optional<std::vector<std::byte>>> payload = channel.next();
      if (!payload.is_ok()) return payload.status();
      if (payload->has_value()) {
        Result<Message> message = decode(**payload);
        if (!message.is_ok()) return message.status();
        return std::optional(message.take());
      }
      if (channel.closed()) return fail(Code::remote_error, "it died or left");
      if (deadline.passed()) return std::optional<Message>();
      std::vector<pollfd> polled{to_poll(channel.wakeup())};
      wait(polled, deadline);
    }
  }

  Status lost(const Status& why) const {
    return {why.code(), fmt::format("{}: {}, which leads it: {}", wish_.name, describe(leader_), why.text()), leader_.rank};
  }

  const Regrouping& wish_;
  const link::PeerIdentity& leader_;
  std::array<std::byte, link::Hello::kBytes> hello_;
  Approach way_;
};

}  // namespace

Result<std::optional<Membership>> regroup(const Regrouping& wish, const Family& family, const Environment& environment,
                                          const std::function<Status()>& trouble) {
  const bool leads = wish.members.front() == family.self;
  Claim claim{family.self, digest_of(wish.members), wish.colour, wish.key, ""};
  link::NetworkDoors doors;
  Status mistake = wish.mistake;
  if (mistake.is_ok() && wish.colour != kNoColour) {
    Result<link::NetworkDoors> opened = open_candidates(environment, family.self.value);
    if (opened.is_ok()) doors = opened.take();
    mistake = opened.status();
    claim.root_address = doors.address();
  }
  Regrouping mine = wish;
  mine.mistake = mistake;
  if (!mistake.is_ok()) {
    if (leads)
      (void)Leader(mine, family, claim).lead(Deadline(wish.timeout), trouble);
    else
      Member(mine, family).tell_mistake();
    return mistake;
  }
  Result<Placement> placed =
      leads ? Leader(mine, family, claim).lead(Deadline(wish.timeout), trouble)
            : Member(mine, family).follow(claim, Deadline(wish.timeout, [&] { return !trouble().is_ok(); }), trouble);
  if (!placed.is_ok()) return placed.status();
  if (placed->rank.value < 0) return std::optional<Membership>();
  Membership place{id_of_child(*placed, wish.colour, family.key), placed->rank, placed->world};
  if (place.rank.value == 0)
    if (Status started = start_root(std::move(doors), place.id.key); !started.is_ok()) return started;
  return std::optional(std::move(place));
}

}  // namespace shoal::comm
