// SPDX-License-Identifier: Apache-2.0
// Runs the ranks of a test as threads of one process or as processes of their own, through the public API. A rank's body returns
// an empty text, or what is wrong. The library reads its environment once a process: everything happens in forked children.
#pragma once

#include <nccl.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace testing {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct Ranks {
  int world;
  int rank;
  ncclUniqueId id;
};

// The environment that forces a transport: "threads" (loopback), "shm", "tcp" or "ucx". With SHOAL_TEST_TRANSPORT=verbs in the
// test's own environment "tcp" means verbs, on a machine with devices.
Variables transport_variables(const std::string& transport);

// Runs `body` once in a forked child with the variables set; its text, or how the child died, or that it took too long.
std::string in_child(const Variables& variables, int seconds, const std::function<std::string()>& body);

// One process a rank. All ranks' complaints, joined. A rank in `may_die` may end in any way. `before` runs in each rank's process
// before anything of the library does (rank 0 then makes the id).
std::string as_processes(int world, const Variables& variables, int seconds, const std::function<std::string(const Ranks&)>& body,
                         const std::vector<int>& may_die = {}, const std::function<void(int)>& before = {});

// One thread a rank, all in one forked child.
std::string as_threads(int world, const Variables& variables, int seconds, const std::function<std::string(const Ranks&)>& body);

// The one of the two that the transport is made for.
std::string run_ranks(const std::string& transport, int world, int seconds, const std::function<std::string(const Ranks&)>& body);

// ncclCommInitRank; "" or the error.
std::string init(const Ranks& ranks, ncclComm_t& comm);

// Runs `body` with a communicator of the ranks; aborts it if something is wrong, so that nobody waits.
std::string with_comm(const Ranks& ranks, const std::function<std::string(ncclComm_t)>& body);

// "" for ncclSuccess, else what was called, the code and the last error's text.
std::string must(ncclResult_t result, const char* what);

// Open descriptors of this process; entries in /dev/shm.
int open_descriptors();
int shared_memory_names();

}  // namespace testing
