// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/comm.h"

#include <shoal/compress.h>

#include "train/error.h"

namespace shoal::train {
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

ncclRedOp_t Communicator::nccl(Over op) {
  switch (op) {
    case Over::sum: return ncclSum;
    case Over::min: return ncclMin;
    case Over::max: return ncclMax;
  }
  return ncclSum;
}

Communicator Communicator::split(int colour, int key) const {
  ncclComm_t child = nullptr;
  check(ncclCommSplit(handle(), colour, key, &child, nullptr), "ncclCommSplit", seat_);
  int rank = 0, world = 0;
  check(ncclCommUserRank(child, &rank), "ncclCommUserRank", seat_);
  check(ncclCommCount(child, &world), "ncclCommCount", seat_);
  return {{.rank = static_cast<std::size_t>(rank), .world = static_cast<std::size_t>(world)}, child};
}

void Communicator::set_wire_format(const std::string& format) {
  check(shoalCommSetWireFormat(handle(), format.empty() ? nullptr : format.c_str()), "shoalCommSetWireFormat", seat_);
  wire_format_ = format;
}

void Communicator::check_async() const {
  ncclResult_t result = ncclSuccess;
  check(ncclCommGetAsyncError(comm_.get(), &result), "ncclCommGetAsyncError", seat_);
  check(result, "work on a stream", seat_);
}

void Communicator::close() { check(ncclCommDestroy(comm_.release()), "ncclCommDestroy", seat_); }

Stream::Stream(Seat seat) : seat_(seat) {
  cudaStream_t stream = nullptr;
  check(shoalStreamCreate(&stream), "shoalStreamCreate", seat);
  stream_.reset(stream);
}

void Stream::wait() const { check(shoalStreamSynchronize(stream_.get()), "shoalStreamSynchronize", seat_); }

void Stream::launch(std::function<void()> work) const {
  auto kept = std::make_unique<std::function<void()>>(std::move(work));
  const auto run = [](void* it) { (*std::unique_ptr<std::function<void()>>(static_cast<std::function<void()>*>(it)))(); };
  check(shoalStreamLaunch(stream_.get(), run, kept.get()), "shoalStreamLaunch", seat_);
  static_cast<void>(kept.release());  // it is run's
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

bool Event::has_passed() const {
  const ncclResult_t result = shoalEventQuery(event_.get());
  if (result != ncclInProgress) check(result, "shoalEventQuery", seat_);
  return result == ncclSuccess;
}

double Event::ms_since(const Event& start) const {
  double ms = 0;
  check(shoalEventElapsedMs(&ms, start.event_.get(), event_.get()), "shoalEventElapsedMs", seat_);
  return ms;
}

}  // namespace shoal::train
