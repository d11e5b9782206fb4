// SPDX-License-Identifier: Apache-2.0
// Who this process is among those that a launcher started, and how they get a common unique id without MPI or a store.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "comm/unique_id.h"
#include "core/environment.h"
#include "core/status.h"

namespace shoal::comm {

struct Launch {
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  int local_world = 1;
  const char* launcher = "none";  // "shoal-run", "torchrun", "openmpi", "mpich", "slurm", "none"
  std::string job;                // text that all ranks of this job share and other jobs on this host do not
  std::string rendezvous;  // host:port to meet at; empty: all ranks are of this host, meet at a local socket named after the job
  std::string secret;      // key material for the meeting; empty: none known (local meeting checks the user id instead)
};

using GetVariable = std::function<std::optional<std::string>(const char*)>;

// In the order: SHOAL_RANK/SHOAL_WORLD_SIZE, torchrun (RANK, WORLD_SIZE and LOCAL_RANK), Open MPI, PMI (MPICH, Hydra, Intel MPI),
// Slurm (only inside a step). invalid_usage for a half-set or contradictory set, naming the variables and values.
Result<Launch> detect_launch(const GetVariable& get);

// Set by shoal-run or by hand: SHOAL_RANK, SHOAL_WORLD_SIZE, SHOAL_LOCAL_RANK, SHOAL_LOCAL_WORLD_SIZE (default: all ranks are of
// this host), SHOAL_JOB (default: named after the parent process). For every launcher: SHOAL_RENDEZVOUS, SHOAL_SECRET.

// Collective over the launch; see shoalLaunchUniqueId in shoal.h. Blocks at most `timeout_ms`; a timeout says who is missing
// (rank 0) or where rank 0 was expected (others). 0: no limit.
Result<UniqueId> launch_unique_id(const Launch& launch, const Environment& environment, std::int64_t timeout_ms);

}  // namespace shoal::comm
