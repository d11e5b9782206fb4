// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace shoal::comm {

// Why a process of this host may not answer, as /proc knows it: "stopped by a signal", "ended, not waited for by its parent";
// empty if nothing stands out.
std::string condition_of_process(int pid);

}  // namespace shoal::comm
