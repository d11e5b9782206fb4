// SPDX-License-Identifier: Apache-2.0
// What a consultant would say of a host before a job runs on it. Pure.
#pragma once

#include <string>
#include <vector>

#include "topo/host.h"

namespace shoal::topo_tool {

struct Advice {
  std::string what;    // names the thing and both numbers
  std::string remedy;  // what to do about it
};

// `ranks`: that will run on the host; 0: not known. What is unknown is no reason for advice.
std::vector<Advice> advise(const topo::Host& host, int ranks);

}  // namespace shoal::topo_tool
