// SPDX-License-Identifier: Apache-2.0
// The border between the library and C: statuses become codes and a last-error text, exceptions end here. Any thread.
#pragma once

#include <nccl.h>

#include <new>
#include <system_error>

#include "core/expects.h"
#include "core/status.h"

namespace shoal::api {

// Remembers the text of a failure for ncclGetLastError, says it in the log, and gives its code.
ncclResult_t report(const char* function, const Status& status);

// Runs the body of a C function: Status f().
template <typename F>
ncclResult_t guarded(const char* function, F&& body) noexcept {
  try {
    const Status status = std::forward<F>(body)();
    if (status.code() == Code::in_progress) return ncclInProgress;
    return status.is_ok() ? ncclSuccess : report(function, status);
  } catch (const std::bad_alloc&) {
    return report(function, Status(Code::system_error, "out of memory"));
  } catch (const std::system_error& error) {  // a thread that cannot be started
    return report(function, Status(Code::system_error, error.what()));
  } catch (const std::exception& error) {
    return report(function, Status(Code::internal_error, error.what()));
  }
}

// invalid_argument for a null pointer: "ncclCommCount: count is NULL".
inline Status require(const void* pointer, const char* name) {
  return pointer != nullptr ? Status() : fail(Code::invalid_argument, "{} is NULL", name);
}

}  // namespace shoal::api
