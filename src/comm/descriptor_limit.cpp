// SPDX-License-Identifier: Apache-2.0
#include "comm/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "core/log.h"

namespace shoal::comm {
namespace {

// Doorbell and window pages, listeners, control connection, event and timer descriptors, and handshakes in flight.
constexpr rlim_t kOwn = 32;

void raise_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  if (limit.rlim_cur >= limit.rlim_max) return;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  log::info(-1, "limit of open descriptors raised from {} to {}", before, limit.rlim_max);
}

rlim_t open_now() {
  std::error_code none;
  rlim_t count = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", none), end; !none && at != end; at.increment(none)) ++count;
  return count;
}

}  // namespace

Status require_descriptors(World world) {
  static std::once_flag raised;
  std::call_once(raised, raise_limit);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const rlim_t need = kOwn + static_cast<rlim_t>(std::max(world.value, 0));
  if (need < limit.rlim_cur / 2) return {};  // spares counting
  const rlim_t open = open_now();
  if (open + need <= limit.rlim_cur) return {};
  return fail(
      Code::system_error,
      "a communicator of {} ranks needs {} descriptors here, {} are open already, and this process may have {}: raise the "
      "limit (ulimit -n)",
      world.value, need, open, limit.rlim_cur);
}

}  // namespace shoal::comm
