// SPDX-License-Identifier: Apache-2.0
// Makes the links of one rank of one communicator, lazily: only those that a plan asks for. The lower rank of a pair connects,
// the higher accepts; which transport is used is decided by the connecting side, in the order of the list, going on with the
// next one where a handshake fails. Connections that arrive before this rank asks for them are kept. Strangers on the listening
// sockets cost a slot for a bounded time and nothing else.
//
// A transport without a carrier is used where it is the first that reaches: both ranks know that, and start it when they are
// asked.
//
// Owned by a communicator, driven by the thread that drives its plans; nothing blocks.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "core/status.h"
#include "link/handshake.h"
#include "link/link.h"
#include "link/reception.h"

namespace shoal::link {

class Switchboard {
 public:
  // `peers` by rank (self included); `transports` in order of preference; `network` and `local` may be closed (then only
  // what needs no listener works). All referenced objects outlive the switchboard.
  Switchboard(const Endpoint& self, std::span<const PeerIdentity> peers, const Key& key, std::span<Transport* const> transports,
              NetworkDoors network, Listener local);
  Switchboard(const Switchboard&) = delete;
  Switchboard& operator=(const Switchboard&) = delete;
  ~Switchboard();

  // The link to `peer` on `channel`, or null while it is being made (call progress and ask again). The first call starts it.
  // The link stays the same, and the switchboard's. An error is final for this peer and channel; its culprit is the peer.
  Result<Link*> link(Rank peer, int channel);

  // Accepts, shakes hands, finishes. Errors of strangers are not errors; a failed attempt to reach a peer comes out of link().
  // Costs system calls: for while one waits, not for every message.
  void progress();
  // Everything that progress() may have news from, timers included.
  void wakeups(std::vector<Wakeup>& into) const;

  // A peer's connection that is not for a link but for whoever owns this: its hello names kVisit in place of a transport.
  struct Visitor {
    Rank from;
    Handshake shaken;
  };
  static constexpr const char* kVisit = "visit";
  // Those who have come and are wanted; the others stay. Of each peer only the newest is kept.
  std::vector<Visitor> take_visitors(const std::function<bool(Rank)>& wanted);

  // Every link made so far, to look at its health or to flush it: f(link), f(link, peer) or f(link, peer, channel). Those that
  // the peer made and this rank has not asked for yet are among them.
  template <typename F>
  void for_each_link(F&& f) {
    for (auto& [place, line] : lines_) {
      if (!line.link) continue;
      if constexpr (std::is_invocable_v<F&, Link&, Rank, int>)
        f(*line.link, place.peer, place.channel);
      else if constexpr (std::is_invocable_v<F&, Link&, Rank>)
        f(*line.link, place.peer);
      else
        f(*line.link);
    }
  }

 private:
  struct Place {
    Rank peer;
    int channel;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Line {
    std::unique_ptr<Connection> making;  // null: made, failed, or waiting for the peer to connect
    std::unique_ptr<Link> link;
    Status failure;
    bool asked = false;   // link() has been called
    bool in_use = false;  // link() has given it away
  };

  std::vector<Transport*> transports_to(const PeerIdentity& peer) const;
  void start(Place place, Line& line);
  void advance(Place place, Line& line);
  void admit(Arrival arrival);
  void receive(Arrival arrival);
  Status check(const Arrival& arrival) const;
  Transport* transport_of(const Arrival& arrival) const;

  const Endpoint& self_;
  const std::span<const PeerIdentity> peers_;
  const Key key_;
  const std::vector<Transport*> transports_;
  Reception reception_;
  std::vector<Arrival> arrivals_;  // of one progress(); empty between
  std::map<Place, Line> lines_;
  std::map<Rank, Handshake> visitors_;
};

}  // namespace shoal::link
