// SPDX-License-Identifier: Apache-2.0
// Is this run slower than an earlier one? Times of the same calls as ratios. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "perf/earlier_run.h"

namespace shoal::perf {

struct Compared {
  RowKey key;
  // Microseconds, the shortest of several cycles; nothing where either run lacks the half.
  struct Half {
    double then_us = 0, now_us = 0;
    double ratio() const { return now_us / then_us; }
  };
  std::optional<Half> out_of_place, in_place;

  bool is_worse(double tolerance) const;
};

// Whether the two can be compared at all: "", or why not (another collective or world).
std::string check_comparable(const Results& then, const Results& now);

// The calls that both runs made, in the order of `now`; none if one has CPU times and the other has not. Zero-byte calls and
// halves without a time are left out.
std::vector<Compared> compare(const Results& then, const Results& now);

// The comment lines of the report: a line a call, and the verdict.
std::string comparison_text(const std::vector<Compared>& compared, const std::string& path, double tolerance);

// That something was compared and nothing was worse.
bool is_good(const std::vector<Compared>& compared, double tolerance);

}  // namespace shoal::perf
