// SPDX-License-Identifier: Apache-2.0
// Host streams and events of the C API.
#include "api/streams.h"

#include <shoal/shoal.h>

#include <map>
#include <mutex>

#include "api/errors.h"

struct shoalEvent {
  shoal::device::Event event;
};

namespace shoal::api {
namespace {

// Live objects by the pointer that the caller holds: a stale or foreign pointer is recognised, never followed.
template <typename Handle, typename Object>
class Registry {
 public:
  Handle add(std::shared_ptr<Object> object) {
    const auto handle = reinterpret_cast<Handle>(object.get());
    const std::lock_guard lock(mutex_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  std::shared_ptr<Object> find(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<Object> remove(Handle handle) {
    const std::lock_guard lock(mutex_);
    auto node = objects_.extract(handle);
    return node.empty() ? nullptr : std::move(node.mapped());
  }

 private:
  std::mutex mutex_;
  std::map<Handle, std::shared_ptr<Object>> objects_;  // under mutex_
};

// Live as long as the process: the last use may be in a destructor of the user's static objects.
Registry<cudaStream_t, device::Stream>& streams() {
  static auto* const registry = std::make_unique<Registry<cudaStream_t, device::Stream>>().release();
  return *registry;
}
Registry<shoalEvent_t, shoalEvent>& events() {
  static auto* const registry = std::make_unique<Registry<shoalEvent_t, shoalEvent>>().release();
  return *registry;
}

Status no_stream(cudaStream_t stream) {
  return fail(Code::invalid_argument, "stream {} was not made by shoalStreamCreate, or is destroyed", static_cast<void*>(stream));
}

Result<std::shared_ptr<device::Stream>> live_stream(cudaStream_t stream) {
  auto found = stream == nullptr ? nullptr : streams().find(stream);
  if (found == nullptr) return no_stream(stream);
  return found;
}

Result<std::shared_ptr<shoalEvent>> live_event(shoalEvent_t event) {
  auto found = events().find(event);
  if (found == nullptr)
    return fail(Code::invalid_argument, "event {} was not made by shoalEventCreate, or is destroyed", static_cast<void*>(event));
  return found;
}

}  // namespace

Result<std::shared_ptr<device::Stream>> find_stream(cudaStream_t stream) {
  if (stream == nullptr) return std::shared_ptr<device::Stream>();
  return live_stream(stream);
}

}  // namespace shoal::api

namespace {

using namespace shoal;
using namespace shoal::api;

// f(the live stream), or why there is none.
template <typename F>
ncclResult_t on_stream(const char* function, cudaStream_t stream, F&& f) {
  return guarded(function, [&]() -> Status {
    auto found = live_stream(stream);
    return found.is_ok() ? f(**found) : found.status();
  });
}
template <typename F>
ncclResult_t on_event(const char* function, shoalEvent_t event, F&& f) {
  return guarded(function, [&]() -> Status {
    auto found = live_event(event);
    return found.is_ok() ? f((*found)->event) : found.status();
  });
}

}  // namespace

extern "C" {

ncclResult_t shoalStreamCreate(cudaStream_t* stream) {
  return guarded("shoalStreamCreate", [&]() -> Status {
    if (Status s = require(stream, "stream"); !s.is_ok()) return s;
    *stream = streams().add(std::make_shared<device::Stream>());
    return {};
  });
}

ncclResult_t shoalStreamDestroy(cudaStream_t stream) {
  return guarded("shoalStreamDestroy", [&]() -> Status {
    const auto removed = streams().remove(stream);
    if (removed == nullptr) return no_stream(stream);
    removed->synchronize();
    return {};
  });
}

ncclResult_t shoalStreamSynchronize(cudaStream_t stream) {
  return on_stream("shoalStreamSynchronize", stream, [](device::Stream& live) {
    live.synchronize();
    return Status();
  });
}

ncclResult_t shoalStreamQuery(cudaStream_t stream) {
  bool idle = false;
  const ncclResult_t result = on_stream("shoalStreamQuery", stream, [&](device::Stream& live) {
    idle = live.idle();
    return Status();
  });
  return result == ncclSuccess && !idle ? ncclInProgress : result;
}

ncclResult_t shoalStreamLaunch(cudaStream_t stream, void (*fn)(void*), void* argument) {
  return on_stream("shoalStreamLaunch", stream, [&](device::Stream& live) -> Status {
    if (fn == nullptr) return fail(Code::invalid_argument, "fn is NULL");
    live.enqueue([fn, argument] { fn(argument); });
    return {};
  });
}

ncclResult_t shoalEventCreate(shoalEvent_t* event) {
  return guarded("shoalEventCreate", [&]() -> Status {
    if (Status s = require(event, "event"); !s.is_ok()) return s;
    *event = events().add(std::make_shared<shoalEvent>());
    return {};
  });
}

ncclResult_t shoalEventDestroy(shoalEvent_t event) {
  return guarded("shoalEventDestroy", [&]() -> Status {
    if (events().remove(event) == nullptr)
      return fail(Code::invalid_argument, "event {} was not made by shoalEventCreate, or is destroyed",
                  static_cast<void*>(event));
    return {};
  });
}

ncclResult_t shoalEventRecord(shoalEvent_t event, cudaStream_t stream) {
  return on_event("shoalEventRecord", event, [&](device::Event& live) -> Status {
    auto on = live_stream(stream);
    if (!on.is_ok()) return on.status();
    live.record(**on);
    return {};
  });
}

ncclResult_t shoalEventQuery(shoalEvent_t event) {
  bool passed = false;
  const ncclResult_t result = on_event("shoalEventQuery", event, [&](device::Event& live) {
    passed = live.passed();
    return Status();
  });
  return result == ncclSuccess && !passed ? ncclInProgress : result;
}

ncclResult_t shoalEventSynchronize(shoalEvent_t event) {
  return on_event("shoalEventSynchronize", event, [](device::Event& live) {
    live.synchronize();
    return Status();
  });
}

ncclResult_t shoalStreamWaitEvent(cudaStream_t stream, shoalEvent_t event) {
  return on_event("shoalStreamWaitEvent", event, [&](device::Event& live) -> Status {
    auto on = live_stream(stream);
    if (!on.is_ok()) return on.status();
    live.delay(**on);
    return {};
  });
}

ncclResult_t shoalEventElapsedMs(double* milliseconds, shoalEvent_t start, shoalEvent_t stop) {
  bool both = false;
  const ncclResult_t result = guarded("shoalEventElapsedMs", [&]() -> Status {
    if (Status s = require(milliseconds, "milliseconds"); !s.is_ok()) return s;
    auto from = live_event(start), to = live_event(stop);
    if (!from.is_ok()) return from.status();
    if (!to.is_ok()) return to.status();
    const auto begin = (*from)->event.time(), end = (*to)->event.time();
    both = begin && end;
    if (both) *milliseconds = std::chrono::duration<double, std::milli>(*end - *begin).count();
    return {};
  });
  return result == ncclSuccess && !both ? ncclInProgress : result;
}

}  // extern "C"
