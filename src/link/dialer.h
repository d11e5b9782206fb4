// SPDX-License-Identifier: Apache-2.0
// The connecting side (the lower rank) of one link in the making: tries the transports that reach the peer in their order, each
// with its carrier's connect, the handshake and the transport's own Connection, until one gives a link. A peer that can be
// reached at several addresses is tried at each in turn. One thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "link/handshake.h"
#include "link/link.h"
#include "link/timer.h"

namespace shoal::link {

class Dialer final : public Connection {
 public:
  // `transports`: those that reach the peer, at least one. What is referenced outlives the dialer.
  Dialer(const Endpoint& self, const PeerIdentity& peer, int channel, const Key& key, std::vector<Transport*> transports);

  // An error says what was tried and why it failed, and has the peer as its culprit. Works no more after a link or an error.
  Result<std::unique_ptr<Link>> progress() override;
  Wakeup wakeup() const override;

 private:
  struct Pausing {};  // before (another) connect; the timer knows how long
  struct Connecting {
    Descriptor stream;
  };
  using Making = std::unique_ptr<Connection>;

  Transport& transport() { return *transports_[index_]; }
  std::vector<std::string> addresses() const;
  const std::string& address() const { return addresses_[where_]; }
  std::string via() const;
  void start();
  Status step();
  Status step_connect();
  Status step_handshake();
  void give_up(const Status& why);
  bool try_again(const Status& why);
  Status nothing_left() const;

  const Endpoint& self_;
  const PeerIdentity& peer_;
  const int channel_;
  const Key& key_;
  const std::vector<Transport*> transports_;

  std::size_t index_ = 0;               // into transports_: the one that is being tried
  std::vector<std::string> addresses_;  // of this transport's carrier, at least one; empty text: the peer has none
  std::size_t where_ = 0;               // into addresses_: the one that is being tried
  int tries_ = 0;                       // rounds through addresses_
  std::string round_;                   // text: the addresses of this round that failed, and why
  std::variant<Pausing, Connecting, Handshake, Making> stage_;
  Timer::Clock::time_point pause_until_{};
  Timer timer_;
  std::unique_ptr<Link> link_;
  std::string tried_;  // text: each transport and why it failed
  Code last_code_ = Code::system_error;
};

}  // namespace shoal::link
