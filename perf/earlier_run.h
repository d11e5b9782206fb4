// SPDX-License-Identifier: Apache-2.0
// Results of an earlier run, read back from its JSON file (json_report.h): of shoal-perf, or of anything else that writes
// nccl-tests' format. Value type; files are read by rank 0 alone.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "perf/report.h"

namespace shoal::perf {

// One call: what rows of two runs must share to be compared.
struct RowKey {
  std::string collective;
  std::uint64_t size = 0;
  std::string type, reduction;
  int root = -1;
  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};

struct Results {
  std::string name;        // of the run, for legends
  std::string collective;  // "all_reduce"; empty if the file does not say
  int world = 0;           // 0 if the file does not say
  std::vector<Row> rows;   // without statistics

  RowKey key(const Row& row) const { return {collective, row.size, row.type, row.reduction, row.root}; }
};

// The results, or why the text is none: a clause. Any bytes may be handed in.
std::variant<Results, std::string> parse_results(std::string_view text);
// Of a file; its name without folder and ".json" is the run's.
std::variant<Results, std::string> read_results(const std::string& path);

}  // namespace shoal::perf
