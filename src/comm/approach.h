// SPDX-License-Identifier: Apache-2.0
// Reaching a listener that may not be there yet, at one of several addresses: connects and shakes hands, again and again, with
// small pauses. The addresses of a round are tried in order, each a moment after the one before or as soon as that has failed,
// and the first that proves the key wins. One thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/channel.h"
#include "comm/deadline.h"
#include "core/status.h"
#include "link/handshake.h"

namespace shoal::comm {

struct Approach {
  std::string whom;                    // for texts: "the process that made the unique id"
  std::vector<std::string> addresses;  // "ip:port" or "host:port", best first; with `local` one name of an abstract UNIX socket
  bool local = false;                  // of this user's
  int rank = -1;                       // this side's, for log lines
  link::Key key;
  std::span<const std::byte> hello;
  std::size_t max_payload = 0;
  std::chrono::milliseconds timeout{0};   // 0: none
  std::chrono::milliseconds patience{0};  // with a peer that refuses or breaks off, again and again; 0: as long as the timeout
  // NCCL_SOCKET_RETRY_CNT and _SLEEP_MSEC, which then stand in for the patience; -1: not set.
  std::int64_t retries = -1;
  std::int64_t retry_sleep_ms = -1;
};

class Approaching {
 public:
  Approaching(Approach plan, const Deadline& deadline);

  // Nothing: not yet. Else where it came to; timeout or remote_error (system_error for a lack of descriptors here) name whom,
  // where, and the last reason of each address. Never blocks. Works no more after a channel or an error.
  Result<std::optional<Channel>> progress();
  void add_to(std::vector<pollfd>& polled) const;
  // Until progress() should be called although nothing polls.
  int sleep_ms() const;

 private:
  struct Attempt {
    std::size_t place;  // into plan_.addresses
    link::Descriptor stream;
    std::optional<link::Handshake> handshake;  // once connected
    Deadline connect, proof;
  };

  void begin_round();
  void start_next();
  Status step(Attempt& attempt);
  void note(std::size_t place, const Status& why);
  std::optional<Status> end_round();
  std::string reasons() const;

  Approach plan_;
  const Deadline deadline_;
  const Deadline patience_, silence_;
  std::list<Attempt> attempts_;    // in flight
  std::size_t next_ = 0;           // of plan_.addresses, in this round
  std::optional<Deadline> pause_;  // between rounds
  Deadline stagger_;               // when the next address is tried although those before have not failed
  std::int64_t rounds_ = 0;        // ended
  bool some_silent_ = false;       // in this round
  std::vector<Status> last_;       // by address: what its last attempt came to
};

// Blocks.
Result<Channel> approach(const Approach& plan, const Deadline& deadline);

}  // namespace shoal::comm
