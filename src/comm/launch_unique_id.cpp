// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "comm/bootstrap.h"
#include "comm/launch.h"
#include "comm/meeting.h"

namespace shoal::comm {
namespace {

// How often this process has called before, as this rank of this job: the calls of all ranks are paired by it. Per rank, so that
// the ranks of a job may also be threads of one process.
std::uint64_t next_sequence(const Launch& launch) {
  using Caller = std::tuple<std::string, std::string, int, int>;
  static std::mutex mutex;
  static std::map<Caller, std::uint64_t> calls;  // by mutex
  const std::scoped_lock lock(mutex);
  return calls[{launch.job, launch.rendezvous, launch.world, launch.rank}]++;
}

}  // namespace

Result<UniqueId> launch_unique_id(const Launch& launch, const Environment& environment, std::int64_t timeout_ms) {
  if (launch.world == 1) return make_unique_id(environment);
  const Result<Meeting> meeting = meeting_of(launch, next_sequence(launch), std::chrono::milliseconds(timeout_ms));
  if (!meeting.is_ok()) return meeting.status();
  if (launch.rank != 0) return attend_meeting(*meeting);
  return host_meeting(*meeting, [&environment] { return make_unique_id(environment); });
}

}  // namespace shoal::comm
