// SPDX-License-Identifier: Apache-2.0
// The results as nccl-tests' JSON, format version 3. Rank 0 only.
#pragma once

#include <string>
#include <vector>

#include "perf/report.h"

namespace shoal::perf {

struct JsonRun {
  std::vector<std::string> arguments;    // the whole command line
  std::vector<std::string> environment;  // "NAME=value": NCCL_* and SHOAL_*, without the secret
  std::string start_time, end_time;      // "2026-02-28 13:00:01"
  int library_version = 0;
  std::vector<RankInfo> ranks;
  std::vector<Row> rows;
  Verdict verdict;
};

std::string json_text(const Options& options, const JsonRun& run);

// "NAME=value" of this process that a report may show.
std::vector<std::string> reportable_environment();

}  // namespace shoal::perf
