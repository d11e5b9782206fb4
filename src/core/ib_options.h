// SPDX-License-Identifier: Apache-2.0
// What NCCL_IB_* say about InfiniBand verbs: whether and through which ports of which devices, and how packets travel. Value
// types.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/name_filter.h"
#include "core/status.h"

namespace shoal {

struct IbOptions {
  bool disable = false;            // NCCL_IB_DISABLE: 0 or 1
  NameFilter devices;              // NCCL_IB_HCA: of devices
  std::string device_text;         // what that was made of
  std::int64_t gid_index = -1;     // NCCL_IB_GID_INDEX: 0 .. 255; -1: chosen by the library
  std::int64_t timeout = 20;       // NCCL_IB_TIMEOUT: 1 .. 31: an acknowledgement may take 4.096 us x 2^this
  std::int64_t retry_count = 7;    // NCCL_IB_RETRY_CNT: 0 .. 7: how often a packet is repeated
  std::int64_t service_level = 0;  // NCCL_IB_SL: 0 .. 15
  std::int64_t traffic_class = 0;  // NCCL_IB_TC: 0 .. 255
  std::int64_t queue_pairs = 1;    // NCCL_IB_QPS_PER_CONNECTION: 1 .. 8, of every port
};

// Reads every variable through `get`, as parse_environment does.
Result<IbOptions> parse_ib_options(const std::function<std::optional<std::string>(const char*)>& get);

}  // namespace shoal
