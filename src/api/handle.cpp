// SPDX-License-Identifier: Apache-2.0
#include "api/handle.h"

#include <chrono>
#include <deque>
#include <thread>

namespace shoal::api {
namespace {

// Handles are reused oldest first, and only when this many are free: a stale one stays recognisable for long.
constexpr std::size_t kReuseFrom = 256;

struct Pool {
  std::mutex mutex;
  std::deque<std::unique_ptr<ncclComm>> all;  // under mutex
  std::deque<ncclComm_t> free;                // under mutex
};

Pool& pool() {
  // Lives as long as the process: handles may be used in destructors of the user's static objects.
  static Pool* const handles = std::make_unique<Pool>().release();
  return *handles;
}

Status not_live(ncclComm_t handle) {
  if (handle == nullptr) return fail(Code::invalid_argument, "comm is NULL");
  return fail(Code::invalid_argument, "comm {} is not a live communicator (destroyed, aborted, or never initialised)",
              static_cast<void*>(handle));
}

bool known(ncclComm_t handle) {
  Pool& handles = pool();
  const std::lock_guard lock(handles.mutex);
  for (const auto& each : handles.all)
    if (each.get() == handle) return true;
  return false;
}

}  // namespace

ncclComm_t make_handle(std::unique_ptr<comm::Communicator> communicator, int device) {
  Pool& handles = pool();
  const std::lock_guard lock(handles.mutex);
  ncclComm_t handle = nullptr;
  if (handles.free.size() >= kReuseFrom) {
    handle = handles.free.front();
    handles.free.pop_front();
  } else {
    handles.all.push_back(std::make_unique<ncclComm>());
    handle = handles.all.back().get();
  }
  handle->communicator = std::move(communicator);
  handle->device = device;
  handle->next_operation = ncclNumOps;
  handle->magic.store(ncclComm::kLive);
  return handle;
}

Result<Entered> Entered::enter(ncclComm_t handle) {
  if (handle == nullptr || handle->magic.load(std::memory_order_relaxed) != ncclComm::kLive) return not_live(handle);
  handle->users.fetch_add(1);
  Entered entered(handle);
  if (handle->magic.load() != ncclComm::kLive) return not_live(handle);  // ended in between; pairs with end_handle
  return entered;
}

Status end_handle(ncclComm_t handle, bool aborting) {
  std::uint64_t live = ncclComm::kLive;
  if (!known(handle) || !handle->magic.compare_exchange_strong(live, 0)) return not_live(handle);
  Status status;
  if (aborting) {
    handle->communicator->abort();
  } else {
    status = handle->communicator->drain();
  }
  while (handle->users.load(std::memory_order_acquire) != 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  if (aborting) (void)handle->communicator->drain();  // work on streams ends by itself now
  handle->communicator.reset();
  {
    const std::lock_guard lock(handle->operations_mutex);
    handle->operations.clear();
  }
  Pool& handles = pool();
  const std::lock_guard lock(handles.mutex);
  handles.free.push_back(handle);
  return status;
}

}  // namespace shoal::api
