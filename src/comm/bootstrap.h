// SPDX-License-Identifier: Apache-2.0
// How the ranks of a communicator find each other. A root service (a thread of the process that made the unique id) gathers one
// record from each rank, over authenticated TCP connections, and gives everyone the whole table; all ranks then hold the same
// agreed facts. The connections stay open as the control plane (control.h): a star that tells everyone about death and failure,
// or a tree, where there are several unique ids.
//
// Addresses are chosen by trial: the id carries all that its maker has, a rank takes the first that proves the key, and is itself
// reached where that connection comes from.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/control.h"
#include "comm/deadline.h"
#include "comm/unique_id.h"
#include "core/environment.h"
#include "core/status.h"
#include "link/link.h"
#include "link/socket.h"

namespace shoal::comm {

// Starts a root service for one communicator in this process and returns its id. With NCCL_COMM_ID set, every rank gets the
// same id from the variable (key from SHOAL_SECRET) and rank 0 starts the service at init.
Result<UniqueId> make_unique_id(const Environment& environment);

// The two halves of make_unique_id, for who needs the address before the service runs: a listener at the best address of this
// host, and a root service at it, in this process.
Status start_root(link::NetworkDoors doors, const link::Key& key);

// What all ranks agree on once; `settings` is rank 0's (bytes that src/comm encodes), so that nothing local decides.
struct Agreement {
  std::vector<link::PeerIdentity> peers;  // by rank
  std::string settings;
  std::vector<std::string> views;  // by rank: what each sees of its host
  std::unique_ptr<Control> control;
};

// Collective over the communicator. `ids` are the same on all ranks, in the same order; each serves a part of them. Blocks until
// all ranks are in, with a deadline: a timeout names how many and, where it is known, which ranks are missing. Two ranks with the
// same number, a rank out of range, different world sizes or different library versions are invalid_usage on all ranks, naming
// both. `self` has everything filled in but nothing of the others. A rank that dies meanwhile is a remote_error on all others,
// naming it. `timeout` 0: no limit. Interrupted: invalid_usage, and the others are told.
//
// With `doors`, opens the listeners of this rank and presents them as its address, which must be empty in `self`; a rank that
// others cannot reach is invalid_usage on all (check_reachable). `view`: what this rank tells all others of its host (bytes).
Result<Agreement> bootstrap(std::span<const UniqueId> ids, Rank rank, World world, const link::PeerIdentity& self,
                            const std::string& settings, const Environment& environment, std::chrono::milliseconds timeout,
                            link::NetworkDoors* doors = nullptr, const Interrupted& interrupted = {},
                            const std::string& view = {});

// Instead of bootstrap, by a rank that cannot join: the others fail at once, naming it and `why`, rather than wait for it. Blocks
// for some seconds at most.
void decline(std::span<const UniqueId> ids, Rank rank, World world, const link::PeerIdentity& self,
             const Environment& environment, const Status& why);

}  // namespace shoal::comm
