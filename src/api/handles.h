// SPDX-License-Identifier: Apache-2.0
// Live handles by the pointer that the caller holds: a stale or foreign one is recognised, never followed. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "core/status.h"

namespace shoal::api {

template <typename T>
class Handles {
 public:
  // `name`: of the argument, for messages.
  explicit Handles(std::string_view name) : name_(name) {}

  T* add(std::shared_ptr<T> made) {
    const std::lock_guard lock(mutex_);
    T* const handle = made.get();
    handles_.emplace(handle, std::move(made));
    return handle;
  }
  Result<std::shared_ptr<T>> find(T* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = handles_.find(handle);
    if (found == handles_.end()) return not_live(handle);
    return found->second;
  }
  Result<std::shared_ptr<T>> remove(T* handle) {
    const std::lock_guard lock(mutex_);
    auto node = handles_.extract(handle);
    if (node.empty()) return not_live(handle);
    return std::move(node.mapped());
  }

 private:
  Status not_live(T* handle) const {
    if (handle == nullptr) return fail(Code::invalid_argument, "{} is NULL", name_);
    return fail(Code::invalid_argument, "{} {} is not live (destroyed, aborted, or never initialised)", name_,
                static_cast<void*>(handle));
  }

  std::string_view name_;
  std::mutex mutex_;
  std::map<T*, std::shared_ptr<T>> handles_;  // under mutex_
};

}  // namespace shoal::api
