// SPDX-License-Identifier: Apache-2.0
// Runs a group of workers and servers, a rank a thread or a process, through the public API.
#pragma once

#include <shoal/parameter_server.h>

#include <functional>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace testing {

// A worker's part of a test: "" or what is wrong. Leaving is not its business.
using WorkerBody = std::function<std::string(shoalPs_t ps, int rank)>;
// Looks at a server that has served.
using ServerBody = std::function<std::string(shoalPs_t ps, int server)>;

struct Group {
  shoalPsConfig config;
  WorkerBody work;
  ServerBody served = [](shoalPs_t, int) { return std::string(); };

  int world() const { return config.workers + config.servers; }
};

// Over "threads", "shm" or "tcp"; all complaints.
std::string run_group(const std::string& transport, const Group& group, const Variables& more = {});

// The part of one rank: joins, works or serves, leaves.
std::string take_part(const Group& group, const Ranks& ranks);

// Push and pull, waited for.
std::string push(shoalPs_t ps, std::size_t first, const std::vector<float>& values);
std::string pull(shoalPs_t ps, std::size_t first, std::vector<float>& values);

// Config of float32 keys, synchronous sums.
shoalPsConfig config_of(int workers, int servers, std::size_t keys);

// A float with a full mantissa and a varying exponent, so that the order of a sum shows in its bits.
float rough(int worker, int iteration, std::size_t key);

// "" if both have the same bits, else the first key that differs.
std::string same_bits(const std::vector<float>& seen, const std::vector<float>& expected, const std::string& what);

}  // namespace testing
