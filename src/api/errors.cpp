// SPDX-License-Identifier: Apache-2.0
#include "api/errors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "core/log.h"

namespace shoal::api {
namespace {

constexpr std::size_t kLastErrorBytes = 1024;

using Text = std::array<char, kLastErrorBytes>;

// The last failure of any thread.
struct LastError {
  std::mutex mutex;
  Text text{};  // under mutex
};

LastError& last_error() {
  static LastError error;
  return error;
}

// What this thread reads: the last failure of its own calls, since another thread's, be it newer, says nothing about them; the
// process' last one while it has none.
struct OwnError {
  bool failed = false;
  Text text{};
};

OwnError& own_error() {
  thread_local OwnError error;
  return error;
}

}  // namespace

ncclResult_t report(const char* function, const Status& status) {
  const std::string text = fmt::format("{}: {}", function, status.text());
  OwnError& own = own_error();
  own.failed = true;
  own.text.fill('\0');
  std::memcpy(own.text.data(), text.data(), std::min(text.size(), kLastErrorBytes - 1));
  {
    LastError& error = last_error();
    const std::lock_guard lock(error.mutex);
    error.text = own.text;
  }
  log::warn(-1, "{}", text);
  // ncclTimeout is newer than the API that this library reports; its callers know the system error.
  return status.code() == Code::timeout ? ncclSystemError : static_cast<ncclResult_t>(status.code());
}

}  // namespace shoal::api

extern "C" {

SHOAL_API void ncclResetDebugInitInternal();  // of no header, but exported by NCCL

const char* pncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "a CUDA call failed";
    case ncclSystemError: return "the operating system refused, or a deadline passed";
    case ncclInternalError: return "internal error of the library";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "another rank died, left or failed";
    case ncclInProgress: return "in progress";
    case ncclNumResults: break;
  }
  return "unknown result code";
}

const char* pncclGetLastError(ncclComm_t) {
  shoal::api::OwnError& own = shoal::api::own_error();
  if (!own.failed) {  // a copy, so that the text does not change under the reader
    shoal::api::LastError& error = shoal::api::last_error();
    const std::lock_guard lock(error.mutex);
    own.text = error.text;
  }
  return own.text.data();
}

ncclResult_t pncclGetVersion(int* version) {
  return shoal::api::guarded("ncclGetVersion", [&] {
    if (shoal::Status s = shoal::api::require(version, "version"); !s.is_ok()) return s;
    *version = NCCL_VERSION_CODE;
    return shoal::Status();
  });
}

// The environment is read once a process: there is nothing to do.
void ncclResetDebugInitInternal() {}
void pncclResetDebugInit() {}

// Each public name is a weak alias of its strong pnccl twin, so that a tool may take its place.
[[gnu::weak, gnu::alias("pncclGetErrorString")]] decltype(pncclGetErrorString) ncclGetErrorString;
[[gnu::weak, gnu::alias("pncclGetLastError")]] decltype(pncclGetLastError) ncclGetLastError;
[[gnu::weak, gnu::alias("pncclGetVersion")]] decltype(pncclGetVersion) ncclGetVersion;
[[gnu::weak, gnu::alias("pncclResetDebugInit")]] void ncclResetDebugInit();

}  // extern "C"
