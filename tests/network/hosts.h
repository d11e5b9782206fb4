// SPDX-License-Identifier: Apache-2.0
// Hosts for tests: network, mount and name spaces of their own, joined by cables, all inside a user namespace that the test makes
// itself, so that nothing of the machine changes and no privilege is needed.
#pragma once

#include <functional>
#include <string>

#include "support/ranks.h"

namespace testing {

// "" if this machine lets a test make hosts, else the reason why not.
const std::string& why_no_hosts();

// Runs `body` in a forked child that may make hosts, with the variables set; its text, or how it died, or that it took too long.
// Its own namespaces are new, too: an empty network with loopback up.
std::string with_hosts(int seconds, const std::function<std::string()>& body, const Variables& variables = {});

// Throws std::runtime_error where the system refuses. Only inside with_hosts.
class Host {
 public:
  explicit Host(const std::string& name);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  // The calling process, which has one thread, becomes one of this host's.
  void enter() const;
  // By the shell; throws with its output if it fails.
  void run(const std::string& command) const;
  // Joins interface `name` of this host and `other_name` of another one.
  void cable(const std::string& name, const Host& other, const std::string& other_name) const;
  // What stands in a file of its /etc.
  void write_etc(const std::string& file, const std::string& text) const;

 private:
  int pid_ = -1;  // of a process that only holds the namespaces
  int end_[2]{};  // pipe whose closing ends it
};

// In this process's own namespaces; throws with the command's output if it fails.
void shell(const std::string& command);

}  // namespace testing
