// SPDX-License-Identifier: Apache-2.0
// The comparison table of all-reduces that courses on distributed training draw, counted from plans and compared with its
// formulas as integers. Unit: one vector of n bytes. Pure.
//
// Two readings are told apart. Unchunked algorithms move whole vectors: bandwidth is that of their busiest round. Chunked ones
// move shares: bandwidth is that of the whole collective.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/types.h"

namespace shoal::plan_tool {

enum class Reading : std::uint8_t { round, whole };
std::string_view name_of(Reading reading);

// A number of vectors, exactly: value / of.
struct Vectors {
  std::uint64_t value = 0, of = 1;
  friend constexpr bool operator==(Vectors a, Vectors b) { return a.value * b.of == b.value * a.of; }
};
// "3", "1.5", "1.9980"
std::string text_of(Vectors vectors);

struct Cost {
  std::uint64_t steps = 0;  // rounds of messages
  Vectors peak;             // most that one rank sends, or that one receives
  Vectors total;            // what all ranks send
  friend constexpr bool operator==(const Cost&, const Cost&) = default;
};

struct CourseRow {
  std::string_view scheme, algorithm;
  Reading reading = Reading::round;
  std::string_view steps, peak, total;  // formulas
  Cost expected, counted;
};

// A row a scheme, for a world that is a power of two from 2 to 1024.
Result<std::vector<CourseRow>> course_table(World world);

}  // namespace shoal::plan_tool
