// SPDX-License-Identifier: Apache-2.0
// What travels with the bootstrap: rank 0's configuration, and the numbers that both ends of a link must hold alike.
#pragma once

#include <string>

#include "core/environment.h"
#include "core/status.h"
#include "ps/config.h"

namespace shoal::ps {

struct Settings {
  Config config;
  Bytes max_message;
  int credits = 1;
  bool shm_disable = false;
  bool loopback_disable = false;
  std::string shim;  // as SHOAL_SHIM; empty: none
};

Settings make_settings(const Config& config, const Environment& environment);
std::string encode(const Settings& settings);
// invalid_usage for anything else than encode() makes: rank 0 is of another kind.
Result<Settings> decode_settings(const std::string& bytes);

}  // namespace shoal::ps
