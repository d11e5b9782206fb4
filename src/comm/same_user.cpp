// SPDX-License-Identifier: Apache-2.0
#include "comm/same_user.h"

#include <sys/socket.h>
#include <unistd.h>

namespace shoal::comm {

bool is_same_user(int unix_stream) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(unix_stream, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

}  // namespace shoal::comm
