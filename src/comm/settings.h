// SPDX-License-Identifier: Apache-2.0
// Numbers and switches that every rank must hold alike. Rank 0's are used by all: they travel with the bootstrap as text. Value
// type.
#pragma once

#include <string>

#include "core/environment.h"
#include "core/status.h"
#include "engine/execution.h"

namespace shoal::comm {

struct Settings {
  engine::Tuning tuning;
  int credits = 4;     // messages a link holds
  int processors = 1;  // that rank 0 may run on: more ranks than this have to share
  bool shm_disable = false;
  bool loopback_disable = false;
  std::string algorithm;  // forced; empty: chosen call by call
  friend bool operator==(const Settings&, const Settings&);
};

// What this process would choose. invalid_argument for an algorithm that does not exist.
Result<Settings> make_settings(const Environment& environment);

std::string encode(const Settings& settings);
Result<Settings> decode_settings(const std::string& text);

}  // namespace shoal::comm
