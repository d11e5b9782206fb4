// SPDX-License-Identifier: Apache-2.0
// The root service of one communicator: gathers the ranks' records, gives everyone the table, then stays as the hub of the
// control plane: it watches every rank's connection and tells all others about death, failure and abort. It trusts nobody that
// has not proven to know the key; strangers cost a slot for some seconds.
//
// run() is the body of a thread of its own (see services.h); stop() may be called from any other.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/channel.h"
#include "comm/gathering.h"
#include "comm/inquest.h"
#include "comm/messages.h"
#include "core/status.h"
#include "link/handshake.h"
#include "link/socket.h"

namespace shoal::comm {

// What the client says in its handshake, so that no connection meant for something else gets in.
inline constexpr std::string_view kBootstrapHello = "shoal bootstrap 1";
// The key of these connections, made from the communicator's: its other uses have their own.
link::Key bootstrap_key(const link::Key& communicator);

struct RootOptions {
  link::Listener listener;
  link::Key key;  // the communicator's
  // Once everybody is in, or something failed: close the listener at once, because the next communicator needs its port. Else
  // it stays open as long as the service runs, so that those who come too late learn why.
  bool frees_port = false;
};

class RootService {
 public:
  // system_error if there is no descriptor left.
  static Result<std::unique_ptr<RootService>> make(RootOptions options);

  // Until all connections are gone, or stop(), or nobody came for an hour.
  void run();
  // Ends run() soon, telling the ranks that this is no death. Any thread.
  void stop();
  // Of the communicator. Any thread.
  const link::Key& key() const { return communicator_key_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Accepted, but not proven yet.
  struct Stranger {
    link::Handshake handshake;
    ForkGuard guard;
    Clock::time_point since;
    bool ready = true;  // polled, or new
  };
  // Proven to know the key; a rank once its record is here.
  struct Member {
    explicit Member(link::Handshake shaken) : channel(std::move(shaken), Side::server, kMaxFromRank) {}
    Channel channel;
    Clock::time_point since;
    std::optional<link::PeerIdentity> who;
    bool same_process = false;  // as this service
    bool told = false;          // has got its notice: the first one counts for good, further ones would be noise
    bool left = false;          // said bye
    bool gone = false;          // to be taken out
    bool ready = true;          // polled, or new
  };

  RootService(RootOptions options, link::Descriptor stop_event);

  bool finished() const;
  bool accepting(Clock::time_point now) const;
  std::size_t places() const;
  Clock::time_point wake_time(Clock::time_point now) const;
  void wait();

  void accept_some();
  void shake_hands();
  void admit(link::Handshake shaken);
  void hear_members();
  void expire();

  void handle(Member& member, const Message& message);
  void on(Member& member, const Record& record);
  void on(Member& member, const Notice& notice);
  void on(Member& member, const GaveUp& gave_up);
  void on(Member& member, const Abort& abort);
  void on(Member& member, const Alarmed& alarmed);
  void on(Member& member, const Bye& bye);
  void settle();
  void lost(Member& member);
  void refuse(Member& member, const Record& record);
  void finish_gathering();
  void fail_all(const Notice& notice, const Member* but);
  void tell(Member& member, const Notice& notice);
  void close_port();
  void say_goodbye();

  link::Listener listener_;
  ForkGuard listener_guard_;
  const link::Key communicator_key_;
  const link::Key key_;  // of the connections
  bool frees_port_;
  std::mutex stop_mutex_;        // held by stop(), and by run() when it closes the event
  link::Descriptor stop_event_;  // an eventfd that stop() makes readable; closed when run() returns
  ForkGuard stop_guard_;
  std::atomic<bool> stopping_{false};  // set by stop(), read by run()

  std::list<Stranger> strangers_;
  std::list<Member> members_;
  Gathering gathering_;
  Inquest inquest_;
  bool complete_ = false;           // the table has gone out
  std::optional<Notice> failure_;   // the first one, told to all
  std::int32_t records_ = 0;        // received ever
  Clock::time_point last_news_;     // of a member
  Clock::time_point accept_pause_;  // accept nobody before
  std::vector<pollfd> polled_;      // of wait(); kept, to spare an allocation a round
};

}  // namespace shoal::comm
