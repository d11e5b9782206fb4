// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace shoal {

// A file's name for one rank: %h is the host's name, %p the process, %r the rank, %% a percent sign. A pattern that does not
// tell ranks apart (has neither %r nor %p) gets ".<rank>" at its end.
std::string expand_path(std::string_view pattern, int rank);

}  // namespace shoal
