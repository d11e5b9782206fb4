// SPDX-License-Identifier: Apache-2.0
// How ranks of a communicator agree on new ones: split and shrink. Those that take part come to a leader, the lowest of them, at
// the listener that it has for links: a way that is open even where the parent's links or its control plane are broken. Each
// brings its wish and the address of a listener, opened in advance; the leader answers each with its place in its child and
// where the child's root service is: in the child's rank 0, so that no child depends on a rank outside it.
//
// Nobody waits for ever: until all have come or the deadline has passed, a death or a mistake of one is an error on all.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "comm/unique_id.h"
#include "core/environment.h"
#include "core/status.h"
#include "link/switchboard.h"

namespace shoal::comm {

inline constexpr std::int32_t kNoColour = -1;

// What one rank wishes.
struct Regrouping {
  const char* name = "split";            // or "shrink", for texts
  std::vector<Rank> members;             // who must come, by rank in the parent, ascending; this rank among them
  std::int32_t colour = kNoColour;       // 0 or more: the same on all of one child; kNoColour: in none
  std::int32_t key = 0;                  // ranks of a child are numbered by key, then by rank in the parent
  Status mistake;                        // not ok: of this rank's caller; the rank only comes to tell the others
  std::chrono::milliseconds timeout{0};  // 0: none
};

// The parent.
struct Family {
  Rank self;
  std::span<const link::PeerIdentity> peers;  // by rank
  std::uint64_t communicator = 0;
  const link::Key& key;
  link::Switchboard& switchboard;  // nobody else drives it meanwhile
};

// A place in a child; its root service runs where the id says.
struct Membership {
  UniqueId id;
  Rank rank;
  World world;
};

// Collective over the members; blocks. Nothing: this rank is in no child. `trouble`, asked now and then, says why the regrouping
// cannot succeed, if so: remote_error if a member is lost (a leader still tells the others for some seconds), else why this rank
// leaves at once. Errors: the mistake; trouble; remote_error for another rank's death or mistake, naming it; invalid_usage if the
// members disagree about who takes part; timeout, naming who did not come.
Result<std::optional<Membership>> regroup(const Regrouping& wish, const Family& family, const Environment& environment,
                                          const std::function<Status()>& trouble);

}  // namespace shoal::comm
