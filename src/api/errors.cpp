// SPDX-License-Identifier: Apache-2.0
#include "api/errors.h"

#include <array>
#include <cstring>
#include <mutex>

#include "core/log.h"

namespace shoal::api {
namespace {

constexpr std::size_t kLastErrorBytes = 1024;

struct LastError {
  std::mutex mutex;
  std::array<char, kLastErrorBytes> text{};  // under mutex
};

LastError& last_error() {
  static LastError error;
  return error;
}

}  // namespace

ncclResult_t report(const char* function, const Status& status) {
  const std::string text = fmt::format("{}: {}", function, status.text());
  {
    LastError& error = last_error();
    const std::lock_guard lock(error.mutex);
    const std::size_t n = std::min(text.size(), kLastErrorBytes - 1);
    std::memcpy(error.text.data(), text.data(), n);
    error.text[n] = '\0';
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
  // A copy a thread, so that the text does not change under the reader.
  thread_local std::array<char, shoal::api::kLastErrorBytes> copy;
  shoal::api::LastError& error = shoal::api::last_error();
  const std::lock_guard lock(error.mutex);
  copy = error.text;
  return copy.data();
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
