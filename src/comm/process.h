// SPDX-License-Identifier: Apache-2.0
// What identifies this process among the ranks of a job.
#pragma once

#include <span>
#include <string>

#include "core/environment.h"
#include "link/link.h"

namespace shoal::comm {

// Host name, host identity (NCCL_HOSTID, else the host name; with the kernel's boot id and the network namespace, beyond which no
// memory can be shared), pid and a random number of this process, drawn anew after a fork. Addresses are left empty.
link::PeerIdentity identity_of_this_process(Rank rank, const Environment& environment);

// How many processors the ranks of this host may run on together: the union of what each may use. A launcher may have bound each
// of them to one of its own. (Where a rank's process cannot be seen from here, what this one may use counts.)
int processors_shared(std::span<const link::PeerIdentity> ranks, const link::PeerIdentity& self);

// A fresh name for an abstract UNIX socket: "shoal-" and 128 random bits.
std::string random_name();

}  // namespace shoal::comm
