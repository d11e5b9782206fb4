// SPDX-License-Identifier: Apache-2.0
// What NCCL_TOPO_* say: where a rank gets its host's topology from, and who writes it down. Value type.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/status.h"

namespace shoal {

struct TopoOptions {
  std::string file;            // NCCL_TOPO_FILE: read in place of looking at the machine; empty: none
  std::string file_variable;   // which of the two names was set
  std::string dump_file;       // NCCL_TOPO_DUMP_FILE: written when a communicator is made; empty: none
  std::string dump_variable;   // likewise
  std::int64_t dump_rank = 0;  // NCCL_TOPO_DUMP_FILE_RANK: by which rank
};

// Reads every variable through `get`, as parse_environment does.
Result<TopoOptions> parse_topo_options(const std::function<std::optional<std::string>(const char*)>& get);

}  // namespace shoal
