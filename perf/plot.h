// SPDX-License-Identifier: Apache-2.0
// Runs as curves: time of a call and bus bandwidth over the size. Pure.
#pragma once

#include <span>
#include <string>

#include "perf/earlier_run.h"

namespace shoal::perf {

// A whole SVG document. One run of one kind of call has a line in place and one out of place; else every kind of call of every
// run has one, out of place where there is that, named by what tells it from the others. Of several cycles the shortest time
// counts.
std::string plot(std::span<const Results> runs);

}  // namespace shoal::perf
