// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/stream_reducer.h"

#include "train/stopwatch.h"

namespace shoal::train {

StreamReducer::StreamReducer(const Communicator& comm, std::size_t at_once) {
  lanes_.reserve(at_once);
  for (std::size_t i = 0; i < at_once; ++i) lanes_.emplace_back(comm);
  for (Lane& each : lanes_) each.comm.count_in(&ledger_);
  for (std::size_t i = 0; i < at_once + 1; ++i) done_.emplace_back(comm.seat());
}

void StreamReducer::start(std::uint64_t round, std::span<float> values) {
  Lane& over = lane(round);
  over.comm.all_reduce(values, Over::sum, over.stream.handle());
  done(round).record(over.stream);
}

void StreamReducer::wait(std::uint64_t round) {
  const Stopwatch watch;
  done(round).wait();
  waited_ms_ += watch.ms();
  lane(round).comm.check_async();
}

void StreamReducer::close() {
  for (Lane& each : lanes_) {
    each.stream.wait();
    each.comm.close();
  }
}

}  // namespace shoal::train
