// SPDX-License-Identifier: Apache-2.0
// What an ncclComm_t points to. Handles come from a pool and are never freed, so that a stale one is recognised instead of being
// undefined; a live one counts the calls that are inside, so that abort from another thread can wait for them.
#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "comm/communicator.h"

// A user-made reduction: sum of inputs times a factor.
struct shoalPremulSum {
  shoal::DataType type;
  std::array<std::byte, 8> factor;  // host-immediate: the value
  const void* late = nullptr;       // device residence: where to read it when the call runs
};

struct ncclComm {
  static constexpr std::uint64_t kLive = 0x73686f616c636f6dULL;  // "shoalcom"

  std::atomic<std::uint64_t> magic{0};
  std::atomic<int> users{0};
  std::unique_ptr<shoal::comm::Communicator> communicator;
  int device = 0;

  std::mutex operations_mutex;
  std::map<int, shoalPremulSum> operations;  // by ncclRedOp_t value, from ncclNumOps up; under operations_mutex
  int next_operation = ncclNumOps;           // under operations_mutex
};

namespace shoal::api {

// A new live handle.
ncclComm_t make_handle(std::unique_ptr<comm::Communicator> communicator, int device);

// Inside a call on a communicator: while it exists the communicator does not go away.
class Entered {
 public:
  // invalid_argument for NULL, a destroyed handle, or something that never was one.
  static Result<Entered> enter(ncclComm_t handle);
  Entered(Entered&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Entered& operator=(Entered&&) = delete;
  ~Entered() {
    if (handle_ != nullptr) handle_->users.fetch_sub(1, std::memory_order_release);
  }

  ncclComm& handle() const { return *handle_; }
  comm::Communicator& communicator() const { return *handle_->communicator; }

 private:
  explicit Entered(ncclComm_t handle) : handle_(handle) {}
  ncclComm_t handle_;
};

// Ends a handle: with `aborting` at once, else after outstanding work. invalid_argument if it is not live.
Status end_handle(ncclComm_t handle, bool aborting);

}  // namespace shoal::api
