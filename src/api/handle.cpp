// SPDX-License-Identifier: Apache-2.0
#include "api/handle.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <deque>

#include "core/signals.h"

namespace shoal::api {
namespace {

using namespace std::chrono_literals;
using Stage = ncclComm::Stage;

// Handles are reused oldest first, and only when this many are free: a stale one stays recognisable for long.
constexpr std::size_t kReuseFrom = 256;

// Calls that run end some 50 ms after abort. But a signal handler may abort the very call that it interrupts.
constexpr auto kAbortWait = 500ms;
constexpr auto kPause = 200us;

constexpr std::uint64_t kKeeps = 1;
constexpr std::uint64_t kAtWork = std::uint64_t{1} << 32;

std::atomic<unsigned>& process_number() {
  static std::atomic<unsigned> number{0};
  return number;
}

struct Pool {
  Pool() {
    pthread_atfork(nullptr, nullptr, [] { process_number().fetch_add(1); });
  }
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
  return std::ranges::any_of(handles.all, [&](const auto& each) { return each.get() == handle; });
}

Status still_making(const char* instead) {
  return fail(Code::invalid_argument, "comm is still being made (ncclInProgress): {}", instead);
}

Status check_process(const ncclComm& handle) {
  if (handle.process == process_number().load(std::memory_order_relaxed)) return {};
  return fail(Code::invalid_usage,
              "comm was made before this process was forked off: make communicators in the process that uses them");
}

// Why the purpose does not fit the stage, if it does not.
Status check_stage(const ncclComm& handle, For purpose) {
  const Stage stage = handle.stage.load(std::memory_order_acquire);
  if (stage == Stage::ready || purpose == For::state) return {};
  if (stage == Stage::making) return still_making("poll ncclCommGetAsyncError until it says ncclSuccess");
  if (stage == Stage::unmade) return handle.unmade;
  if (stage == Stage::finalized)
    return fail(Code::invalid_argument,
                "comm is finalized: only ncclCommDestroy, ncclCommAbort and ncclCommGetAsyncError may follow");
  if (purpose != For::calls) return {};
  return fail(Code::invalid_usage,
              "comm was revoked: only ncclCommSplit, ncclCommShrink, ncclCommDestroy and ncclCommAbort may follow");
}

void give_back(ncclComm& handle) {
  if (handle.maker.joinable()) {
    if (handle.maker.get_id() == std::this_thread::get_id())
      handle.maker.detach();
    else
      handle.maker.join();
  }
  handle.communicator.reset();
  handle.checked.forget();
  handle.unmade = {};
  {
    const std::lock_guard lock(handle.mutex);
    handle.operations.clear();
  }
  Pool& handles = pool();
  const std::lock_guard lock(handles.mutex);
  handles.free.push_back(&handle);
}

// Somebody is no longer here; the last of an ended handle clears up. (A stale handle's caller may come and go meanwhile: only one
// finds it ending.)
void leave(ncclComm& handle, std::uint64_t what) {
  if ((handle.presence.fetch_sub(what) & (kAtWork - 1)) != kKeeps) return;
  std::uint64_t ending = ncclComm::kEnding;
  if (handle.magic.compare_exchange_strong(ending, 0)) give_back(handle);
}

void wait_for_others(const ncclComm& handle, std::chrono::milliseconds longest) {
  const auto end = std::chrono::steady_clock::now() + longest;
  while (handle.presence.load() >= kAtWork) {
    if (std::chrono::steady_clock::now() >= end) return;
    std::this_thread::sleep_for(kPause);
  }
}

// Everything that was given to it runs, or fails; nothing new comes.
void end_worker(ncclComm& handle) {
  std::shared_ptr<device::Stream> worker;
  {
    const std::lock_guard lock(handle.mutex);
    worker = std::move(handle.worker);
  }
  if (worker != nullptr) worker->synchronize();
}

bool is_working(ncclComm& handle) {
  const std::lock_guard lock(handle.mutex);
  return handle.worker != nullptr && !handle.worker->idle();
}

void stop(ncclComm& handle) {
  handle.cancelled.store(true);
  if (handle.stage.load(std::memory_order_acquire) > Stage::unmade) handle.communicator->abort();
}

}  // namespace

ncclComm_t make_handle(const ncclConfig_t& config, bool blocking, int device) {
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
  handle->presence.fetch_add(kKeeps);  // added, not set: see leave()
  handle->stage.store(Stage::making);
  handle->process = process_number().load();
  handle->config = config;
  handle->config.netName = handle->config.commName = nullptr;  // the caller's memory
  handle->blocking = blocking;
  handle->device = device;
  handle->cancelled.store(false);
  handle->next_operation = ncclNumOps;
  handle->magic.store(ncclComm::kLive);
  return handle;
}

void settle(ncclComm& handle, Result<std::unique_ptr<comm::Communicator>> made) {
  if (made.is_ok() && handle.cancelled.load()) (*made)->abort();
  if (made.is_ok())
    handle.communicator = made.take();
  else
    handle.unmade = made.status();
  handle.stage.store(handle.communicator != nullptr ? Stage::ready : Stage::unmade, std::memory_order_release);
}

Result<Entered> Entered::enter(ncclComm_t handle, For purpose) {
  if (handle == nullptr || handle->magic.load(std::memory_order_relaxed) != ncclComm::kLive) return not_live(handle);
  handle->presence.fetch_add(kKeeps + kAtWork);
  Entered entered(handle);
  if (handle->magic.load() != ncclComm::kLive) return not_live(handle);  // ended in between; pairs with end_handle
  if (Status same = check_process(*handle); !same.is_ok()) return same;
  if (Status fits = check_stage(*handle, purpose); !fits.is_ok()) return fits;
  return entered;
}

void Entered::leave() noexcept { api::leave(*handle_, at_work_ ? kKeeps + kAtWork : kKeeps); }

void Entered::rest() {
  if (std::exchange(at_work_, false)) handle_->presence.fetch_sub(kAtWork);
}

void Entered::resume() {
  if (!std::exchange(at_work_, true)) handle_->presence.fetch_add(kAtWork);
}

std::shared_ptr<device::Stream> worker_of(ncclComm& handle) {
  const std::lock_guard lock(handle.mutex);
  if (handle.worker == nullptr) {
    const SignalsBlocked blocked;
    handle.worker = std::make_shared<device::Stream>();
  }
  return handle.worker;
}

Status state_of(ncclComm& handle) {
  const Stage stage = handle.stage.load(std::memory_order_acquire);
  const auto in_progress = [] { return Status(Code::in_progress, "in progress"); };
  if (stage == Stage::making) return in_progress();
  if (stage == Stage::unmade) return handle.unmade;
  // Where all ranks revoke, it does not matter whose revocation came first.
  Status failure = handle.communicator->first_failure();
  if (!failure.is_ok() && !(stage == Stage::revoked && failure.code() == Code::invalid_usage)) return failure;
  const bool stopping = stage == Stage::revoked && !handle.communicator->is_idle();
  return stopping || is_working(handle) ? in_progress() : Status();
}

Status finalize(ncclComm_t handle) {
  Result<Entered> entered = Entered::enter(handle, For::regrouping);
  if (!entered.is_ok()) return entered.status();
  Stage ready = Stage::ready;
  if (!handle->stage.compare_exchange_strong(ready, Stage::finalized))
    return ready == Stage::revoked
               ? fail(Code::invalid_usage, "comm was revoked: it cannot be finalized, only destroyed or aborted")
               : check_stage(*handle, For::calls);
  if (handle->blocking) return entered->communicator().drain();
  entered->rest();
  worker_of(*handle)->enqueue([inside = std::make_shared<Entered>(entered.take())] {
    inside->resume();
    (void)inside->communicator().drain();
  });
  return {Code::in_progress, "finalizing"};
}

Status revoke(ncclComm_t handle) {
  Result<Entered> entered = Entered::enter(handle, For::regrouping);
  if (!entered.is_ok()) return entered.status();
  Stage ready = Stage::ready;
  if (!handle->stage.compare_exchange_strong(ready, Stage::revoked) && ready != Stage::revoked)
    return check_stage(*handle, For::regrouping);
  entered->communicator().revoke();
  if (!handle->blocking && !entered->communicator().is_idle()) return {Code::in_progress, "revoking"};
  // A call that waits on a stream for another communicator has not begun, and never will: it is not waited for.
  const auto end = std::chrono::steady_clock::now() + kAbortWait;
  while (!entered->communicator().is_idle() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kPause);
  return {};
}

Status end_handle(ncclComm_t handle, bool aborting) {
  if (!known(handle)) return not_live(handle);
  if (Status same = check_process(*handle); !same.is_ok()) return same;
  if (!aborting && handle->magic.load() == ncclComm::kLive && handle->stage.load() == Stage::making)
    return still_making("abort it, or poll ncclCommGetAsyncError until it is done and destroy it then");
  std::uint64_t live = ncclComm::kLive;
  if (!handle->magic.compare_exchange_strong(live, ncclComm::kEnding)) return not_live(handle);
  // Who has finalized and is through leaves in order, either way.
  const Stage stage = handle->stage.load();
  const bool cuts_off = aborting && !(stage == Stage::finalized && handle->communicator->is_idle());
  Status status;
  if (cuts_off)
    stop(*handle);
  else if (stage > Stage::unmade)
    status = handle->communicator->drain();
  wait_for_others(*handle, kAbortWait);
  if (cuts_off) stop(*handle);  // it may have been made meanwhile
  end_worker(*handle);
  leave(*handle, kKeeps);
  return aborting || stage == Stage::revoked ? Status() : status;
}

}  // namespace shoal::api
