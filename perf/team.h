// SPDX-License-Identifier: Apache-2.0
// The ranks that one thread drives, and what they do together: join, call, meet, agree on numbers. All ranks of the job make
// the same calls in the same order; a call of several ranks of one thread is one group. A Team belongs to its thread; joining
// may be done by another one before.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perf/buffer.h"
#include "perf/collective.h"
#include "perf/report.h"

namespace shoal::perf {

// A call of the library failed: the line for standard error and the process's exit code.
struct Failure {
  int exit_code;
  std::string line;
};
using MaybeFailure = std::optional<Failure>;

// "host pid 12: Test NCCL failure in ncclAllReduce, rank 3: 'text' (last error)"; a timeout has its own exit code.
Failure make_failure(ncclResult_t result, const std::string& call, const std::string& ranks);

std::string host_name();

struct Member {
  int rank = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;  // null: calls return when they are done
  Buffer send, receive;
  std::vector<void*> handles;         // of ncclCommRegister
  std::vector<ncclWindow_t> windows;  // of ncclCommWindowRegister
};

class Team {
 public:
  // Ranks first, first + 1, ...: `count` of `world`.
  Team(int first, int count, int world);
  ~Team();
  Team(Team&&) noexcept = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int world() const { return world_; }
  bool has_rank_0() const { return members_.front().rank == 0; }
  std::span<Member> members() { return members_; }

  // Joins the ranks of all `teams`, one group.
  static MaybeFailure join(std::span<Team> teams, const ncclUniqueId& id);
  MaybeFailure make_streams();
  // Two buffers a member, which its communicator hears of if `memory` says so.
  MaybeFailure allocate(std::size_t bytes, Memory memory);
  // Orderly end: all ranks call it.
  MaybeFailure leave();
  // After a failure: makes calls of all other ranks return.
  void abort();

  // One call a member, `repeats` times, in one group where there is more than one (a collective of several rounds: a group each).
  MaybeFailure launch(const Collective& collective, std::span<const Call> calls, int repeats);
  MaybeFailure synchronize();
  MaybeFailure barrier();

  // Element-wise over all ranks, in place; values[i] are those of members()[i], all of one length.
  MaybeFailure combine(std::vector<std::vector<double>>& values, ncclRedOp_t op);
  MaybeFailure combine(std::vector<std::vector<std::int64_t>>& values, ncclRedOp_t op);
  // Everybody's RankInfo, by rank.
  MaybeFailure introduce(std::vector<RankInfo>& all, int first_of_process);

 private:
  template <typename Function>
  MaybeFailure grouped(const char* call, Function each);
  std::string rank_names() const;
  MaybeFailure announce(Memory memory);
  void forget(Member& member);

  int world_;
  std::vector<Member> members_;
};

}  // namespace shoal::perf
