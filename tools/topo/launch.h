// SPDX-License-Identifier: Apache-2.0
// A job whose ranks are this program's processes, one each, joined by the library as any user's are. One thread.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"

namespace shoal::topo_tool {

struct DestroyCommunicator {
  void operator()(ncclComm_t comm) const { ncclCommDestroy(comm); }
};
using Communicator = std::unique_ptr<std::remove_pointer_t<ncclComm_t>, DestroyCommunicator>;

struct Launch {
  Communicator comm;
  int rank = 0, world = 1;
  std::string launcher;
};

// system_error with the library's last error; `what` was tried.
Status status_of(ncclResult_t result, const std::string& what);

// Collective over the launch. invalid_argument outside of a launcher and above `most` ranks; `command` is named as what to run.
Result<Launch> join(int most, const std::string& command);

// Every rank's text, in the order of ranks.
Result<std::vector<std::string>> gather(const Launch& launch, const std::string& own);

}  // namespace shoal::topo_tool
