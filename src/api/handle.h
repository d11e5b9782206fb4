// SPDX-License-Identifier: Apache-2.0
// What an ncclComm_t points to, and the stages of its life. Handles come from a pool and are never freed, so that a stale one is
// recognised instead of being undefined. Whoever is inside a call keeps the communicator; the last one out frees it, so that an
// abort from any thread need not wait for calls that have not begun, on a stream that another communicator holds up, say.
#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "api/checked_calls.h"
#include "comm/communicator.h"
#include "device/stream.h"

// A user-made reduction: sum of inputs times a factor.
struct shoalPremulSum {
  shoal::DataType type;
  std::array<std::byte, 8> factor;  // host-immediate: the value
  const void* late = nullptr;       // device residence: where to read it when the call runs
};

struct ncclComm {
  enum class Stage : std::uint8_t {
    making,     // ncclInProgress; there is no communicator yet
    unmade,     // that failed; there will be none
    ready,      // in this and all later stages there is one (whether it has failed, it knows itself)
    finalized,  // no more calls
    revoked,    // no more calls, but regrouping
  };
  static constexpr std::uint64_t kLive = 0x73686f616c636f6dULL;    // "shoalcom"
  static constexpr std::uint64_t kEnding = 0x73686f616c656e64ULL;  // "shoalend": ended, but somebody is inside

  std::atomic<std::uint64_t> magic{0};
  // Low half: who keeps the communicator, the live handle itself and everybody inside. High half: who of them is at work, not
  // waiting in a stream's queue.
  std::atomic<std::uint64_t> presence{0};
  std::atomic<Stage> stage{Stage::making};  // leaving `making` publishes communicator, or why there is none
  unsigned process = 0;                     // changes with a fork
  std::unique_ptr<shoal::comm::Communicator> communicator;
  shoal::Status unmade;  // why
  int device = 0;
  bool blocking = true;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;  // children inherit it
  std::atomic<bool> cancelled{false};             // the making is to end
  shoal::api::CheckedCalls checked;               // the issuing thread's

  std::mutex mutex;                               // of what follows
  std::shared_ptr<shoal::device::Stream> worker;  // a non-blocking one's null stream; made at first use
  std::map<int, shoalPremulSum> operations;       // by ncclRedOp_t value, from ncclNumOps up
  int next_operation = ncclNumOps;

  std::thread maker;  // of a non-blocking one; the thread that gave the handle away, and later whoever frees it
};

namespace shoal::api {

// What a call on a communicator wants, which decides when it may.
enum class For : std::uint8_t {
  calls,       // ready
  questions,   // ready or revoked: rank, world, ...
  regrouping,  // ready or revoked
  state,       // always
};

// Inside a call on a communicator: while it exists the communicator does not go away.
class Entered {
 public:
  // invalid_argument for NULL, a destroyed handle, something that never was one, one that is still being made or finalized;
  // invalid_usage for one that is revoked, or of the process that this one was forked from; for one that could not be made, why.
  static Result<Entered> enter(ncclComm_t handle, For purpose = For::calls);
  Entered(Entered&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), at_work_(std::exchange(other.at_work_, false)) {}
  Entered& operator=(Entered&&) = delete;
  ~Entered() {
    if (handle_ != nullptr) leave();
  }

  ncclComm& handle() const { return *handle_; }
  // Not for For::state, unless the stage is past making.
  comm::Communicator& communicator() const { return *handle_->communicator; }

  // Between the two, abort does not wait for this: it is in a queue.
  void rest();
  void resume();

 private:
  explicit Entered(ncclComm_t handle) : handle_(handle) {}
  void leave() noexcept;
  ncclComm_t handle_;
  bool at_work_ = true;
};

// A new live handle, still in the making.
ncclComm_t make_handle(const ncclConfig_t& config, bool blocking, int device);
// The end of the making: the communicator, or why there is none.
void settle(ncclComm& handle, Result<std::unique_ptr<comm::Communicator>> made);

// The stream that work of a non-blocking communicator runs on where its caller names none.
std::shared_ptr<device::Stream> worker_of(ncclComm& handle);

// Ok, in_progress, or the first failure.
Status state_of(ncclComm& handle);

// No more calls: waits for those before, a non-blocking one in the background (then in_progress).
Status finalize(ncclComm_t handle);
// Ends running calls, here and on the other ranks. No more calls, but regrouping.
Status revoke(ncclComm_t handle);

// Ends a handle: with `aborting` at once, else after outstanding work. invalid_argument if it is not live, or (not aborting)
// still being made.
Status end_handle(ncclComm_t handle, bool aborting);

}  // namespace shoal::api
