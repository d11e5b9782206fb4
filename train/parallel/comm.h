// SPDX-License-Identifier: Apache-2.0
// The library's handles as objects: a communicator of all ranks, streams, events. Every result is checked; a failure is an Error
// (Exit::communication) of one line with the rank and the library's own text. Thread rules are the library's.
#pragma once

#include <nccl.h>
#include <shoal/shoal.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "train/parallel/share.h"

namespace shoal::train {

// Throws unless the call succeeded.
void check(ncclResult_t result, std::string_view call, Seat seat);

// Who this process is, without talking to anybody.
Seat launched_seat();

enum class Over { sum, min, max };

class Communicator {
 public:
  // Collective over all ranks of the launch.
  explicit Communicator(Seat seat);

  Seat seat() const { return seat_; }
  ncclComm_t handle() const { return comm_.get(); }

  // In place; done when the call returns.
  void all_reduce(std::span<std::int64_t> values, Over op) const;
  void all_reduce(std::span<std::uint64_t> values, Over op) const;
  void all_reduce(std::span<double> values, Over op) const;

  // Throws if work on a stream has failed: its events pass all the same.
  void check_async() const;

  // Waits for outstanding work and frees; other ranks need not be there yet. Nothing else may be called afterwards.
  void close();

 private:
  struct Destroy {
    void operator()(ncclComm_t comm) const { ncclCommAbort(comm); }  // only on the way out of a failure: see close()
  };
  Seat seat_;
  std::unique_ptr<ncclComm, Destroy> comm_;
};

class Stream {
 public:
  explicit Stream(Seat seat);
  cudaStream_t handle() const { return stream_.get(); }

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const { shoalStreamDestroy(stream); }
  };
  std::unique_ptr<CUstream_st, Destroy> stream_;
};

class Event {
 public:
  explicit Event(Seat seat);
  void record(const Stream& stream) const;
  void wait() const;
  double ms_since(const Event& start) const;  // both have passed

 private:
  struct Destroy {
    void operator()(shoalEvent_t event) const { shoalEventDestroy(event); }
  };
  Seat seat_;
  std::unique_ptr<shoalEvent, Destroy> event_;
};

}  // namespace shoal::train
