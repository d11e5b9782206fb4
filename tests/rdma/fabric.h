// SPDX-License-Identifier: Apache-2.0
// Hosts with an RDMA device each, which whoever runs these tests has made: network namespaces h1, h2, ... in which `ip netns` and
// `rdma` find them (docs/testing.md). Here ranks are put on them, and their cables cut.
#pragma once

#include <string>
#include <vector>

#include "support/ranks.h"

namespace testing {

// How many there are, h1 to h<that>.
int rdma_hosts();

// The calling process, which has one thread, becomes one of host `number`'s (1, 2, ...). Throws std::runtime_error.
void enter_rdma_host(int number);

// Runs a command by the shell on the host; throws with its output if it fails.
void on_rdma_host(int number, const std::string& command);

// A folder for the log files of one run, and what they say of how many links went over `transport`.
class LinkLog {
 public:
  LinkLog();
  ~LinkLog();
  LinkLog(const LinkLog&) = delete;
  LinkLog& operator=(const LinkLog&) = delete;
  Variables variables() const;
  int links(const std::string& transport) const;
  std::string text() const;

 private:
  std::string folder_;
};

}  // namespace testing
