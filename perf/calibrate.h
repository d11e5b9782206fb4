// SPDX-License-Identifier: Apache-2.0
// shoal-perf --calibrate: what links and processors of this job do, as the file that SHOAL_CALIBRATION names. All ranks take
// part, each a process with one rank; rank 0 measures with the lowest rank of its own host and the lowest of another one, one
// after the other, while all others wait.
#pragma once

#include <string>

#include "perf/team.h"

namespace shoal::perf {

// 0: not measured.
struct WireFigures {
  double latency_s = 0;      // of an empty message, without the sender's overhead
  double overhead_s = 0;     // of the sender's processor, a message
  double bandwidth_Bps = 0;  // of large messages, one direction
};

struct CalibrationFigures {
  std::string within_transport;  // what joins ranks of rank 0's host: "shm", "tcp"; empty: it has no other rank
  WireFigures within, between;
  double copy_Bps = 0, reduce_Bps = 0;
};

// The file's text; `ranks` and `when` are for its first lines, which are comments.
std::string calibration_text(const CalibrationFigures& figures, const std::vector<RankInfo>& ranks, const std::string& when);

// Measures on a team of one rank that has joined. Rank 0 has the figures afterwards.
MaybeFailure calibrate(Team& team, const std::vector<RankInfo>& ranks, CalibrationFigures& figures);

}  // namespace shoal::perf
