// SPDX-License-Identifier: Apache-2.0
// Reaching a listener that may not be there yet: connects and shakes hands, again and again, with small pauses. Blocks the
// calling thread. Pure function but for the socket it opens.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

#include "comm/channel.h"
#include "comm/deadline.h"
#include "core/status.h"
#include "link/handshake.h"

namespace shoal::comm {

struct Approach {
  std::string whom;     // for texts: "the process that made the unique id"
  std::string address;  // "ip:port" or "host:port"; with `local` the name of an abstract UNIX socket, of this user's
  bool local = false;
  link::Key key;
  std::span<const std::byte> hello;
  std::size_t max_payload = 0;
  std::chrono::milliseconds timeout{0};   // 0: none
  std::chrono::milliseconds patience{0};  // with a peer that refuses or breaks off, again and again; 0: as long as the timeout
};

// timeout or remote_error, or system_error for a lack of descriptors here, naming whom, where and the last reason.
Result<Channel> approach(const Approach& plan, const Deadline& deadline);

}  // namespace shoal::comm
