// SPDX-License-Identifier: Apache-2.0
// A host as JSON: all that the model knows, under the model's names (host.h), what is unknown left out. Pure.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "topo/host.h"

namespace shoal::topo {

// invalid_argument names field, value and what is allowed. Any bytes may be handed in. What it gives is valid.
Result<Host> parse_host(std::string_view text);

// parse_host gives the same host back.
std::string json_of(const Host& host);

// A file of either kind: NCCL's XML or this JSON; the text names the file.
Result<Host> load_host(const std::string& path);

}  // namespace shoal::topo
