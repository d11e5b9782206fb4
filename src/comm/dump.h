// SPDX-License-Identifier: Apache-2.0
// A picture of one rank's communicator as a JSON file: who it is, what it says of itself, and its last operations. Written when
// something fails or the user asks; read by `shoal-plan desync`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/report.h"
#include "core/status.h"
#include "link/link.h"

namespace shoal::comm {

// An operation as it is told: FlightRecorder's, in words and in time since the epoch.
struct DumpedOperation {
  std::uint64_t ticket = 0;    // place in the rank's order
  std::uint64_t sequence = 0;  // among the collectives; 0: transfers
  std::string call;            // "all_reduce #88 of 1000 float32, sum"
  std::uint64_t bytes = 0;
  std::string algorithm;                      // empty: none was chosen
  std::string state;                          // issued, running, done, failed
  std::int64_t started_ns = 0, ended_ns = 0;  // 0: not yet, or not measured
  friend bool operator==(const DumpedOperation&, const DumpedOperation&) = default;
};

struct Dump {
  link::PeerIdentity who;  // rank, host and pid alone
  std::int32_t world = 0;
  std::uint64_t communicator = 0;
  std::int64_t written_ns = 0;
  std::string failure;  // empty: none
  Report report;
  std::vector<DumpedOperation> operations;  // oldest first
};

std::string to_json(const Dump& dump);
// invalid_argument, naming what is wrong, for text that is no dump.
Result<Dump> dump_from_json(const std::string& text);

// system_error naming the path.
Status write_dump(const std::string& path, const Dump& dump);

}  // namespace shoal::comm
