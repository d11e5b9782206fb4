// SPDX-License-Identifier: Apache-2.0
// One call being run: all tracks of its plan over all its slices. Reused from call to call; starting and running one allocates
// nothing. Driven by one thread (see drive.h), which may drive several executions of several ranks in turn.
#pragma once

#include <memory>
#include <vector>

#include "engine/track.h"

namespace shoal::engine {

// Agreed numbers that say how a plan runs.
struct Tuning {
  Bytes slice{64 << 10};  // bytes of a message, at most what links take
  int in_flight = 2;      // slices that a lane works on at a time
};

inline constexpr std::size_t kMaxLanes = 2;
inline constexpr int kMaxInFlight = 16;

class Execution {
 public:
  Execution(Links& links, std::uint64_t communicator);

  void start(const Call& call, const plan::Plan& plan, const Tuning& tuning);
  // Runs what can run now; true if anything moved.
  bool advance();
  // All steps are done and every byte has left this rank.
  bool done() const { return running_ == 0 && links_.flushed(); }
  // The first track's failure, if any.
  const Status& failure() const;

  const Job& job() const { return job_; }
  Links& links() { return links_; }
  // A track that is not done; any, if only bytes have yet to leave.
  const Track& waiting_track() const;
  // f(track) for every track that is not done.
  template <typename F>
  void for_each_waiting(F&& f) const {
    for (std::size_t i = 0; i < used_; ++i)
      if (!tracks_[i].done()) f(tracks_[i]);
  }

 private:
  Links& links_;
  std::uint64_t communicator_;
  Job job_;
  std::vector<Track> tracks_;
  std::size_t used_ = 0, running_ = 0;
};

}  // namespace shoal::engine
