// SPDX-License-Identifier: Apache-2.0
#include "link/remote_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shoal::link {
namespace {

bool ask(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

constinit std::atomic<bool> RemoteFence::joined_{false};

void RemoteFence::join() {
  if (!takes_part() && ask(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)) joined_.store(true, std::memory_order_relaxed);
}

void RemoteFence::everywhere() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ask(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace shoal::link
