// SPDX-License-Identifier: Apache-2.0
// The root service of one communicator: gathers the ranks' records, gives everyone the table, then stays as the hub of the
// control plane: it watches every rank's connection and tells all others about death, failure and abort. It trusts nobody that
// has not proven to know the key; strangers cost a slot for some seconds.
//
// A communicator made from several unique ids has a service for each, which gathers a part of the ranks. The first id's makes the
// table; each of the others passes on what its ranks say, and is to the first what a rank is: the control plane is a tree.
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
#include "comm/upstream.h"
#include "core/status.h"
#include "link/handshake.h"
#include "link/socket.h"

namespace shoal::comm {

// What the client says in its handshake, so that no connection meant for something else gets in.
inline constexpr std::string_view kBootstrapHello = "shoal bootstrap 2";
// For which a rank seals the first unique id in its record.
inline constexpr std::string_view kUpstreamPurpose = "shoal bootstrap: first unique id";
// The key of these connections, made from the communicator's: its other uses have their own.
link::Key bootstrap_key(const link::Key& communicator);

struct RootOptions {
  link::NetworkDoors doors;
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
    std::optional<std::string>
        service;        // another root service: its address, for texts; `who` is then a rank of its process, if any
    bool told = false;  // has got its notice: the first one counts for good, further ones would be noise
    bool left = false;  // said bye
    bool gone = false;  // to be taken out
    bool ready = true;  // polled, or new
  };

  RootService(RootOptions options, link::Descriptor stop_event);

  // Has said what it is.
  static bool is_known(const Member& member) { return member.who || member.service; }

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
  void on(Member& member, const Records& records);
  void on(Member& member, const Notice& notice);
  void on(Member& member, const GaveUp& gave_up);
  void on(Member& member, const Abort& abort);
  void on(Member& member, Alarmed alarmed);
  void on(Member& member, Report report);
  void on(Member& member, Bye bye);
  void ask_all(const Inquiry& inquiry);
  void settle();
  void lost(Member& member);
  void refuse(Member& member);
  void finish_gathering();
  // Where another service is the first one (upstream.h).
  void pass_on(Member& member, const Record& record);
  void hear_upstream();
  void hand_out(Table table);
  Notice without_upstream(const Status& why) const;
  enum class From : std::uint8_t { below, upstream };
  void fail_all(const Notice& notice, const Member* but, From from = From::below);
  void tell(Member& member, const Notice& notice);
  void close_port();
  void say_goodbye();

  link::NetworkDoors doors_;
  const std::string address_;  // for texts
  std::vector<ForkGuard> door_guards_;
  const link::Key communicator_key_;
  const link::Key key_;  // of the connections
  bool frees_port_;
  std::mutex stop_mutex_;        // held by stop(), and by run() when it closes the event
  link::Descriptor stop_event_;  // an eventfd that stop() makes readable; closed when run() returns
  ForkGuard stop_guard_;
  std::atomic<bool> stopping_{false};  // set by stop(), read by run()

  std::list<Stranger> strangers_;
  std::list<Member> members_;
  Gathering gathering_;                    // of the first service
  std::optional<Upstream> upstream_;       // of the others
  std::optional<Record> passed_on_;        // of the others: the first record, whose list of ids the further ones must share
  std::vector<link::PeerIdentity> peers_;  // the table that has gone out
  std::optional<link::PeerIdentity> first_root_;  // of the others: the rank that the first service lives with
  Inquest inquest_;                               // of the first service
  bool complete_ = false;                         // the table has gone out
  std::optional<Notice> failure_;                 // the first one, told to all
  std::int32_t records_ = 0;                      // received ever
  Clock::time_point last_news_;                   // of a member
  Clock::time_point accept_pause_;                // accept nobody before
  std::vector<pollfd> polled_;                    // of wait(); kept, to spare an allocation a round
};

}  // namespace shoal::comm
