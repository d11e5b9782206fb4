// SPDX-License-Identifier: Apache-2.0
// How the ranks of a launch get one unique id: rank 0 makes it and waits where all know to look, at a port or at a local socket
// named after the job; the others come and fetch it. Both sides prove the launch's secret; without one, the job's name and
// the place stand in for it, which keeps jobs apart but protects from nobody. The id travels encrypted. Blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "comm/launch.h"
#include "comm/unique_id.h"
#include "core/status.h"
#include "link/handshake.h"

namespace shoal::comm {

struct Meeting {
  Rank rank;
  World world;
  bool local = false;                    // of one host: `place` is the name of an abstract UNIX socket
  std::string place;                     // else host:port
  link::Key key;                         // differs from meeting to meeting
  std::chrono::milliseconds timeout{0};  // 0: none
};

// The meeting number `sequence` (from 0) of this launch. invalid_usage if the ranks are of several hosts and no place is given.
Result<Meeting> meeting_of(const Launch& launch, std::uint64_t sequence, std::chrono::milliseconds timeout);

// Rank 0: hands out what `make` gives, made once the place is held. Returns when everyone else has it.
Result<UniqueId> host_meeting(const Meeting& meeting, const std::function<Result<UniqueId>()>& make);
// The others.
Result<UniqueId> attend_meeting(const Meeting& meeting);

}  // namespace shoal::comm
