// SPDX-License-Identifier: Apache-2.0
// What identifies this process among the ranks of a job.
#pragma once

#include <string>

#include "core/environment.h"
#include "link/link.h"

namespace shoal::comm {

// Host name, host identity (NCCL_HOSTID, else the kernel's boot id with the host name), pid and a random number of this process,
// drawn anew after a fork. Addresses are left empty.
link::PeerIdentity identity_of_this_process(Rank rank, const Environment& environment);

// A fresh name for an abstract UNIX socket: "shoal-" and 128 random bits.
std::string random_name();

}  // namespace shoal::comm
