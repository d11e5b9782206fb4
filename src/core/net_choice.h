// SPDX-License-Identifier: Apache-2.0
// NCCL_NET: by which network the ranks shall talk. Value type.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace shoal {

enum class Net : std::uint8_t {
  any,  // unset, or a name that asks for nothing special here (Socket, IB, a plugin's): what does best without being asked for
  ucx,  // UCX, in any case: what UCX finds, before everything else between ranks that share no memory
};

// Reads it through `get`, as parse_environment does.
Net parse_net(const std::function<std::optional<std::string>(const char*)>& get);

// The process's own, read at the first call. Any thread.
Net wanted_net();

}  // namespace shoal
