// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "comm/bootstrap.h"
#include "comm/job.h"
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

// Ranks started by hand may have different parents (a wrapper each, two terminals): then a timeout is all that anyone sees.
Status with_hint(const Status& why, const Launch& launch) {
  if (why.code() != Code::timeout || !launch.job.starts_with(kParentJob)) return why;
  return {
      why.code(),
      std::string(why.text()) + "; SHOAL_JOB is not set, so only children of one parent process meet: set it alike on all ranks",
      why.culprit()};
}

}  // namespace

Result<UniqueId> launch_unique_id(const Launch& launch, const Environment& environment, std::int64_t timeout_ms) {
  if (launch.world == 1) return make_unique_id(environment);
  const Result<Meeting> meeting = meeting_of(launch, next_sequence(launch), std::chrono::milliseconds(timeout_ms));
  if (!meeting.is_ok()) return meeting.status();
  Result<UniqueId> id = launch.rank != 0 ? attend_meeting(*meeting)
                                         : host_meeting(*meeting, [&environment] { return make_unique_id(environment); });
  if (!id.is_ok()) return with_hint(id.status(), launch);
  return id;
}

}  // namespace shoal::comm
