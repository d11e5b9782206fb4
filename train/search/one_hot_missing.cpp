// SPDX-License-Identifier: Apache-2.0
// In place of one_hot_cbc.cpp where CBC is missing.
#include "train/error.h"
#include "train/search/one_hot.h"

namespace shoal::train {

std::optional<Choices> solve(const OneHotProblem&) {
  throw failure(Exit::usage,
                "search: this shoal-train was built without the integer programs' solver CBC: install coinor-libcbc-dev and "
                "configure and build again");
}

}  // namespace shoal::train
