// SPDX-License-Identifier: Apache-2.0
// What NCCL_IB_* say about InfiniBand verbs: whether and through which ports of which devices, and how packets travel. Value
// types.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace shoal {

// NCCL_IB_HCA: [^][=]name[:port],name[:port]...: names of devices are prefixes, or exact after '='; those that must not be used
// after '^'. Without a port all of the device's.
class DeviceFilter {
 public:
  // The empty text admits everything. invalid_argument names `variable`, the text and what is wrong with it.
  static Result<DeviceFilter> parse(std::string_view variable, std::string_view text);
  bool admits(std::string_view device, int port) const;

 private:
  struct Entry {
    std::string name;
    int port = 0;  // 0: any
  };
  bool excludes_ = false;
  bool exact_ = false;
  std::vector<Entry> entries_;
};

struct IbOptions {
  bool disable = false;            // NCCL_IB_DISABLE: 0 or 1
  DeviceFilter devices;            // NCCL_IB_HCA
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
