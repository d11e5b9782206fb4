// SPDX-License-Identifier: Apache-2.0
// Draws a pipeline's timeline, measured or predicted: time to the right, a row a stage, a bar an action with its micro-batch's
// number, coloured by kind (lighter in later chunks), utilisation in the title. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "train/parallel/schedule.h"

namespace shoal::train {

// A whole SVG document. `what`: the title's first words, "1f1b, 4 stages, 8 micro-batches".
std::string svg_of(const Timeline& timeline, std::string_view what);

// Writes it to a file; throws Error (Exit::usage) if that is not possible.
void write_svg(const Timeline& timeline, std::string_view what, const std::string& path);

}  // namespace shoal::train
