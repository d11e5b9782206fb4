// SPDX-License-Identifier: Apache-2.0
// The library's handles as objects: communicators, streams, events, groups of calls. Every result is checked; a failure is an
// Error (Exit::communication) of one line with the rank and the library's own text. Thread rules are the library's.
#pragma once

#include <nccl.h>
#include <shoal/shoal.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "train/nn/bf16.h"
#include "train/parallel/ledger.h"
#include "train/parallel/share.h"
#include "train/parallel/wire_format.h"

namespace shoal::train {

// Throws unless the call succeeded.
void check(ncclResult_t result, std::string_view call, Seat seat);

// Who this process is, without talking to anybody.
Seat launched_seat();

enum class Over { sum, min, max };

// The element types that can be communicated.
template <typename T>
inline constexpr ncclDataType_t kDataType = [] {
  if constexpr (std::is_same_v<T, float>)
    return ncclFloat32;
  else if constexpr (std::is_same_v<T, double>)
    return ncclFloat64;
  else if constexpr (std::is_same_v<T, Bf16>)
    return ncclBfloat16;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return ncclInt64;
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return ncclUint64;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return ncclInt32;
  else {
    static_assert(std::is_same_v<T, std::byte>);
    return ncclUint8;
  }
}();

// Calls take spans of the types above. With a stream they are enqueued, and memory is to be left alone until the stream has come
// there; without one they are done on return (within a Group: at its end). The ledger, if there is one, is told of every call.
class Communicator {
 public:
  // Collective over all ranks of the launch.
  explicit Communicator(Seat seat);

  Seat seat() const { return seat_; }
  ncclComm_t handle() const { return comm_.get(); }

  // Collective: those with the same colour, ordered by key, then by rank here.
  Communicator split(int colour, int key) const;

  // node: how many ranks, consecutive ones, are of a node, for the ledger; 0: all. It divides the world.
  void count_in(Ledger* ledger, std::size_t node = 0) {
    ledger_ = ledger;
    node_ = node;
  }
  // What float32 looks like on the wire from now on (shoal/compress.h); empty: as it is. The same on all ranks. The ledger counts
  // the bytes that it takes.
  void set_wire_format(const std::string& format);

  // In place.
  template <typename T>
  void all_reduce(std::span<T> values, Over op = Over::sum, cudaStream_t stream = nullptr) const {
    check(ncclAllReduce(values.data(), values.data(), values.size(), kDataType<T>, nccl(op), handle(), stream), "ncclAllReduce",
          seat_);
    note<T>(Moves::all_reduce, values.size(), 1);
  }
  // all: as many times mine as there are ranks.
  template <typename T>
  void all_gather(std::type_identity_t<std::span<const T>> mine, std::span<T> all, cudaStream_t stream = nullptr) const {
    check(ncclAllGather(mine.data(), all.data(), mine.size(), kDataType<T>, handle(), stream), "ncclAllGather", seat_);
    note<T>(Moves::all_gather, mine.size(), seat_.world);
  }
  template <typename T>
  void reduce_scatter(std::type_identity_t<std::span<const T>> all, std::span<T> mine, cudaStream_t stream = nullptr) const {
    check(ncclReduceScatter(all.data(), mine.data(), mine.size(), kDataType<T>, ncclSum, handle(), stream), "ncclReduceScatter",
          seat_);
    note<T>(Moves::reduce_scatter, mine.size(), seat_.world);
  }
  // The i-th of as many equal parts goes to rank i, and comes from it.
  template <typename T>
  void all_to_all(std::type_identity_t<std::span<const T>> from, std::span<T> to, cudaStream_t stream = nullptr) const {
    check(ncclAlltoAll(from.data(), to.data(), from.size() / seat_.world, kDataType<T>, handle(), stream), "ncclAlltoAll", seat_);
    note<T>(Moves::all_to_all, from.size() / seat_.world, seat_.world);
  }
  template <typename T>
  void broadcast(std::span<T> values, std::size_t root, cudaStream_t stream = nullptr) const {
    check(ncclBroadcast(values.data(), values.data(), values.size(), kDataType<T>, static_cast<int>(root), handle(), stream),
          "ncclBroadcast", seat_);
    if (seat_.rank == root) note<T>(Moves::broadcast, values.size(), 1);
  }
  template <typename T>
  void send(std::span<T> values, std::size_t to, cudaStream_t stream = nullptr) const {
    check(ncclSend(values.data(), values.size(), kDataType<std::remove_const_t<T>>, static_cast<int>(to), handle(), stream),
          "ncclSend", seat_);
    if (ledger_ != nullptr) ledger_->sent(Moves::point_to_point, values.size_bytes(), seat_.world, node_);
  }
  template <typename T>
  void receive(std::span<T> values, std::size_t from, cudaStream_t stream = nullptr) const {
    check(ncclRecv(values.data(), values.size(), kDataType<T>, static_cast<int>(from), handle(), stream), "ncclRecv", seat_);
  }

  // Throws if work on a stream has failed: its events pass all the same.
  void check_async() const;

  // Waits for outstanding work and frees; other ranks need not be there yet. Nothing else may be called afterwards.
  void close();
  // Ends what is under way, here and on all ranks, and frees. Nothing else may be called afterwards.
  void abort() { comm_.reset(); }

 private:
  struct Destroy {
    void operator()(ncclComm_t comm) const { ncclCommAbort(comm); }  // only on the way out of a failure: see close()
  };
  Communicator(Seat seat, ncclComm_t comm) : seat_(seat), comm_(comm) {}
  static ncclRedOp_t nccl(Over op);
  // blocks: that are encoded apart, of as many elements each.
  template <typename T>
  void note(Moves how, std::size_t elements, std::size_t blocks) const {
    const std::string_view format = std::is_same_v<T, float> ? wire_format_ : std::string_view();
    if (ledger_ != nullptr) ledger_->sent(how, blocks * wire_bytes(format, elements, sizeof(T)), seat_.world, node_);
  }

  Seat seat_;
  std::unique_ptr<ncclComm, Destroy> comm_;
  Ledger* ledger_ = nullptr;
  std::size_t node_ = 0;
  std::string wire_format_;
};

// Calls between here and finish() are one: sends and receives wait for each other in no order.
class Group {
 public:
  explicit Group(Seat seat) : seat_(seat) { check(ncclGroupStart(), "ncclGroupStart", seat_); }
  ~Group() {
    if (open_) ncclGroupEnd();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  void finish() {
    open_ = false;
    check(ncclGroupEnd(), "ncclGroupEnd", seat_);
  }

 private:
  Seat seat_;
  bool open_ = true;
};

class Stream {
 public:
  explicit Stream(Seat seat);
  cudaStream_t handle() const { return stream_.get(); }
  void wait() const;  // for all that is enqueued
  // Enqueues work, which throws nothing.
  void launch(std::function<void()> work) const;

 private:
  Seat seat_;
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
  bool has_passed() const;
  double ms_since(const Event& start) const;  // both have passed

 private:
  struct Destroy {
    void operator()(shoalEvent_t event) const { shoalEventDestroy(event); }
  };
  Seat seat_;
  std::unique_ptr<shoalEvent, Destroy> event_;
};

}  // namespace shoal::train
