// SPDX-License-Identifier: Apache-2.0
// Numbers and switches that every rank must hold alike. Rank 0's are used by all: they travel with the bootstrap as text. Value
// type.
#pragma once

#include <optional>
#include <string>

#include "comm/algorithm_filter.h"
#include "comm/calibration.h"
#include "core/environment.h"
#include "core/shim.h"
#include "core/status.h"
#include "engine/execution.h"

namespace shoal::comm {

struct Settings {
  engine::Tuning tuning;
  bool slice_is_given = false;  // by SHOAL_SLICE_BYTES: pipelines keep to it
  int credits = 4;              // messages a link holds
  int processors = 1;           // that rank 0 may run on: more ranks than this have to share
  bool shm_disable = false;
  bool loopback_disable = false;
  bool mapped_disable = false;
  std::int64_t pull_bytes = -1;  // blocks from which ranks of a host read each other's memory; 0: none, -1: by measurement
  std::optional<Shim> shim;      // what slows the links
  std::string shim_text;         // what it was made of; empty: none
  std::optional<Calibration> calibration;  // what plans are priced with beside the transports' own numbers
  Calibration::Wire network;               // between hosts, as the transport states it that rank 0 would take; 0: not known
  AlgorithmFilter algorithms;              // which may be chosen
  engine::Numerics numerics = engine::Numerics::fast;
  std::string algorithm_text;  // what the filter was made of: variable=text
  friend bool operator==(const Settings&, const Settings&);
};

// What this process would choose; it has not looked for a network. invalid_argument for an algorithm that does not exist; the
// calibration's errors.
Result<Settings> make_settings(const Environment& environment);

// What carries messages to other hosts from here, in its own numbers: opens devices, where there are any. Zeros where that is
// TCP, over whose network nothing is known.
Calibration::Wire find_network();

std::string encode(const Settings& settings);
Result<Settings> decode_settings(const std::string& text);

}  // namespace shoal::comm
