// SPDX-License-Identifier: Apache-2.0
// The root services that run in this process, a thread each. Any thread. When the process ends in order, all are stopped and
// joined; in a forked child there are none, whatever the parent had.
#pragma once

#include <memory>

#include "comm/root_service.h"
#include "core/status.h"

namespace shoal::comm {

// Starts the service's thread; it ends by itself. system_error if there can be no thread.
Status start_service(std::unique_ptr<RootService> service);

// Whether the root service of the communicator with this key runs in this process.
bool service_runs_here(const link::Key& communicator);

}  // namespace shoal::comm
