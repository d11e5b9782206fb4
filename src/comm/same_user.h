// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of a UNIX stream, as the kernel says. Pure function.
#pragma once

namespace shoal::comm {

// Whether the peer's process had this process's effective user id when it connected or listened.
bool is_same_user(int unix_stream);

}  // namespace shoal::comm
