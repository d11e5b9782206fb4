// SPDX-License-Identifier: Apache-2.0
// Where a rank gets its host's topology from, who writes it down, and whether threads keep to their place in it. Value type.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/status.h"

namespace shoal {

struct TopoOptions {
  std::string file;              // NCCL_TOPO_FILE: read in place of looking at the machine; empty: none
  std::string file_variable;     // which of the two names was set
  std::string dump_file;         // NCCL_TOPO_DUMP_FILE: written when a communicator is made; empty: none
  std::string dump_variable;     // likewise
  std::int64_t dump_rank = 0;    // NCCL_TOPO_DUMP_FILE_RANK: by which rank
  bool stream_affinity = true;   // SHOAL_STREAM_AFFINITY: 0 or 1; 1: a stream's thread keeps to the NUMA node of who made it
  bool ignore_affinity = false;  // NCCL_IGNORE_CPU_AFFINITY: 0 or 1; 1: even to processors that the process was not given
};

// Reads every variable through `get`, as parse_environment does.
Result<TopoOptions> parse_topo_options(const std::function<std::optional<std::string>(const char*)>& get);

}  // namespace shoal
