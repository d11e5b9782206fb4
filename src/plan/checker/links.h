// SPDX-License-Identifier: Apache-2.0
// The links between all ranks, and the messages on them. Links come into being when a plan first names them; each lies beside the
// others of its receiver, and its oldest message lies in it: for a large world that is one cache line a message instead of many.
// One owner, one thread.
#pragma once

#include <utility>
#include <vector>

#include "plan/checker/arena.h"

namespace shoal::plan::checker {

// What few messages have: more than one value, or (a signal) what its sender has heard.
template <typename Value>
struct Extra {
  std::vector<Value> values;
  std::vector<std::uint32_t> clocks;
};

template <typename Value>
struct Message {
  Value one;  // if size is 1
  std::uint32_t next = kNone;
  std::uint32_t extra = kNone;
  std::int32_t size = 0;  // 0: a signal
  std::int16_t run = 0;   // of the sender's program
};

template <typename Value>
struct Link {
  Message<Value> first;        // the oldest, if any is held; the others hang from it
  std::uint32_t last = kNone;  // the newest, if it is another
  std::int32_t held = 0;       // messages not yet received
  std::uint32_t posted = 0;    // messages ever sent
  std::int32_t from = 0, to = 0, channel = 0;
  std::int16_t sender = -1, receiver = -1;  // lanes
  bool referred = false;                    // the newest message refers to the sender's memory still
  bool sender_waits = false, receiver_waits = false;
};

// Where a link is to be found, while others are added.
struct LinkId {
  std::int32_t to = -1;
  std::uint32_t index = 0;
};

template <typename Value>
class Links {
 public:
  explicit Links(std::size_t world) : inboxes_(world) {}

  LinkId between(std::int32_t from, std::int32_t to, std::int32_t channel) {
    Inbox& inbox = inboxes_[static_cast<std::size_t>(to)];
    if (inbox.links.size() < kFew) {
      for (std::uint32_t i = 0; i < inbox.links.size(); ++i)
        if (inbox.links[i].from == from && inbox.links[i].channel == channel) return {to, i};
    } else {
      if (const std::uint32_t i = entry(inbox, from, channel); i != kNone) return {to, i};
    }
    const auto index = static_cast<std::uint32_t>(inbox.links.size());
    Link<Value>& link = inbox.links.emplace_back();
    link.from = from;
    link.to = to;
    link.channel = channel;
    if (inbox.links.size() == kFew)
      for (std::uint32_t i = 0; i < kFew; ++i) entry(inbox, inbox.links[i].from, inbox.links[i].channel) = i;
    else if (inbox.links.size() > kFew)
      entry(inbox, from, channel) = index;
    return {to, index};
  }
  // The reference is good until the same receiver gets another link.
  Link<Value>& operator[](LinkId id) { return inboxes_[static_cast<std::size_t>(id.to)].links[id.index]; }
  const Link<Value>& operator[](LinkId id) const { return inboxes_[static_cast<std::size_t>(id.to)].links[id.index]; }
  const std::vector<Link<Value>>& of_receiver(std::size_t to) const { return inboxes_[to].links; }

  // Room for the message that push() will add, with `size` values.
  Message<Value>& prepare(Link<Value>& link, std::int32_t size, bool with_clocks) {
    if (link.held != 0) spare_ = messages_.make();
    Message<Value>& message = link.held == 0 ? link.first : messages_[spare_];
    message.next = kNone;
    message.size = size;
    message.extra = size > 1 || with_clocks ? extras_.make() : kNone;
    if (size > 1) extras_[message.extra].values.resize(static_cast<std::size_t>(size));
    return message;
  }
  void push(Link<Value>& link) {
    if (link.held != 0) {
      (link.last == kNone ? link.first : messages_[link.last]).next = spare_;
      link.last = spare_;
    }
    ++link.held;
    ++link.posted;
  }
  void pop(Link<Value>& link) {
    if (link.first.extra != kNone) extras_.give_back(link.first.extra);
    --link.held;
    const std::uint32_t second = link.first.next;
    if (second == kNone) return;
    link.first = messages_[second];
    if (link.last == second) link.last = kNone;
    messages_.give_back(second);
  }

  Value* values(Message<Value>& message) {
    return message.size == 1 ? &message.one : message.size == 0 ? nullptr : extras_[message.extra].values.data();
  }
  std::vector<std::uint32_t>& clocks(Message<Value>& message) { return extras_[message.extra].clocks; }

 private:
  // A few are searched; more have an index by channel and sender.
  static constexpr std::uint32_t kFew = 12;
  struct Inbox {
    std::vector<Link<Value>> links;
    std::vector<std::vector<std::uint32_t>> index;  // [channel][from]
  };

  std::uint32_t& entry(Inbox& inbox, std::int32_t from, std::int32_t channel) {
    const auto c = static_cast<std::size_t>(channel);
    if (c >= inbox.index.size()) inbox.index.resize(c + 1);
    if (inbox.index[c].empty()) inbox.index[c].assign(inboxes_.size(), kNone);
    return inbox.index[c][static_cast<std::size_t>(from)];
  }

  std::vector<Inbox> inboxes_;  // [receiver]
  Arena<Message<Value>> messages_;
  Arena<Extra<Value>> extras_;
  std::uint32_t spare_ = kNone;  // prepared, not yet pushed
};

}  // namespace shoal::plan::checker
