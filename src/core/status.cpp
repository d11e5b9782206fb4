// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <system_error>

namespace shoal {

std::string errno_text(int number) { return fmt::format("{} ({})", std::generic_category().message(number), number); }

}  // namespace shoal
