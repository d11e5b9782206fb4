// SPDX-License-Identifier: Apache-2.0
// The door of a rank: accepts on its listeners, shakes hands, and hands over the connections that have proven that they know the
// key and said a hello. Strangers cost a slot for a bounded time and nothing else. One thread.
#pragma once

#include <optional>
#include <vector>

#include "link/handshake.h"
#include "link/hello.h"
#include "link/link.h"
#include "link/timer.h"

namespace shoal::link {

struct Arrival {
  Hello hello;
  Carrier carrier;   // what it came by
  Handshake shaken;  // has succeeded: its stream and session key are for whom the hello names
};

class Reception {
 public:
  static constexpr std::size_t kMaxGuests = 64;                // connections that have proven nothing yet
  static constexpr std::chrono::milliseconds kMaxStay{5'000};  // of each
  // When all slots are taken, the oldest guest has to go once it has had this long; until then newcomers wait in the backlog,
  // so that a crowd of honest peers is served in turn.
  static constexpr std::chrono::milliseconds kMinStay{250};

  // Either may be missing. `self` is for log lines; `key` outlives this.
  Reception(Rank self, const Key& key, NetworkDoors network, Listener local);

  bool listens(Carrier carrier) const;
  // Appends what has arrived. Never blocks; some system calls, even when there is nothing to do.
  void progress(std::vector<Arrival>& arrivals);
  void wakeups(std::vector<Wakeup>& into) const;

 private:
  using Clock = Timer::Clock;
  struct Door {
    Listener listener;
    Carrier carrier;
    Clock::time_point closed_until{};  // after the system refused to accept
    bool warned = false;               // of that, since the last success
  };
  struct Guest {
    Handshake handshake;
    Carrier carrier;
    Clock::time_point since;
  };

  void shake_hands(Clock::time_point now, std::vector<Arrival>& arrivals);
  bool has_room(Clock::time_point now) const;
  void accept_at(Door& door, Clock::time_point now);
  void set_timer(Clock::time_point now);

  const Rank self_;
  const Key& key_;
  std::vector<Door> doors_;    // with open listeners
  std::vector<Guest> guests_;  // oldest first
  Timer timer_;
};

}  // namespace shoal::link
