// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/comm.h"

#include "train/error.h"

namespace shoal::train {
namespace {

ncclRedOp_t nccl(Over op) {
  switch (op) {
    case Over::sum: return ncclSum;
    case Over::min: return ncclMin;
    case Over::max: return ncclMax;
  }
  return ncclSum;
}

template <typename T>
void all_reduce_now(const Communicator& comm, std::span<T> values, ncclDataType_t type, Over op) {
  check(ncclAllReduce(values.data(), values.data(), values.size(), type, nccl(op), comm.handle(), nullptr), "ncclAllReduce",
        comm.seat());
}

}  // namespace

void check(ncclResult_t result, std::string_view call, Seat seat) {
  if (result == ncclSuccess) return;
  throw failure(Exit::communication, "rank {} of {}: {}: {}: {}", seat.rank, seat.world, call, ncclGetErrorString(result),
                ncclGetLastError(nullptr));
}

Seat launched_seat() {
  shoalLaunch launch{};
  check(shoalGetLaunch(&launch), "shoalGetLaunch", {});
  return {.rank = static_cast<std::size_t>(launch.rank), .world = static_cast<std::size_t>(launch.world)};
}

Communicator::Communicator(Seat seat) : seat_(seat) {
  ncclComm_t comm = nullptr;
  check(shoalCommInitLaunch(&comm), "shoalCommInitLaunch", seat);
  comm_.reset(comm);
}

void Communicator::all_reduce(std::span<std::int64_t> values, Over op) const { all_reduce_now(*this, values, ncclInt64, op); }
void Communicator::all_reduce(std::span<std::uint64_t> values, Over op) const { all_reduce_now(*this, values, ncclUint64, op); }
void Communicator::all_reduce(std::span<double> values, Over op) const { all_reduce_now(*this, values, ncclFloat64, op); }

void Communicator::check_async() const {
  ncclResult_t result = ncclSuccess;
  check(ncclCommGetAsyncError(comm_.get(), &result), "ncclCommGetAsyncError", seat_);
  check(result, "work on a stream", seat_);
}

void Communicator::close() { check(ncclCommDestroy(comm_.release()), "ncclCommDestroy", seat_); }

Stream::Stream(Seat seat) {
  cudaStream_t stream = nullptr;
  check(shoalStreamCreate(&stream), "shoalStreamCreate", seat);
  stream_.reset(stream);
}

Event::Event(Seat seat) : seat_(seat) {
  shoalEvent_t event = nullptr;
  check(shoalEventCreate(&event), "shoalEventCreate", seat);
  event_.reset(event);
}

void Event::record(const Stream& stream) const {
  check(shoalEventRecord(event_.get(), stream.handle()), "shoalEventRecord", seat_);
}
void Event::wait() const { check(shoalEventSynchronize(event_.get()), "shoalEventSynchronize", seat_); }

double Event::ms_since(const Event& start) const {
  double ms = 0;
  check(shoalEventElapsedMs(&ms, start.event_.get(), event_.get()), "shoalEventElapsedMs", seat_);
  return ms;
}

}  // namespace shoal::train
