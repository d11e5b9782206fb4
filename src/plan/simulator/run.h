// SPDX-License-Identifier: Apache-2.0
// One simulated run: the event loop. Internal to the simulator; one thread, used once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "plan/simulator/cursor.h"
#include "plan/simulator/events.h"
#include "plan/simulator/fabric.h"
#include "plan/simulator/lengths.h"
#include "plan/simulator/link_table.h"
#include "plan/simulator/simulator.h"

namespace shoal::plan {

class Run {
 public:
  // `plans` of ranks 0..period-1 of the world, which outlive this.
  Run(std::span<const Plan> plans, World world, const Cluster& cluster, const SimulationOptions& options, const Slices& slices);

  Status run();
  // After run(): everything but bound_s.
  Simulation result() const;
  double time_s() const { return time_s_; }

 private:
  // What a step had waited for last: whose step ended, and how many messages lie on the way to it.
  struct Cause {
    double at_s = 0;
    std::int32_t node = -1;  // in nodes_; -1: none, or not kept
    std::uint32_t depth = 0;
  };
  struct Track {
    Cursor cursor;
    std::int32_t rank = 0;
    std::int32_t channel = 0;
    std::uint64_t slice = 0;
    std::uint64_t bytes = 0;  // of the step that is running
    std::int32_t in = -1, out = -1;
    Cause ended;  // its last step
  };
  struct Processor {          // one rank's tracks, and whose turn it is
    std::uint64_t ready = 0;  // tracks that may be able to go on
    std::int32_t turn = 0, running = -1;
    bool queued = false;
    std::uint64_t sent = 0, received = 0;
  };
  struct Link {
    std::int32_t first = -1, last = -1;       // messages that are there
    std::int32_t receiver = -1, sender = -1;  // tracks that wait
    std::int32_t credits = 0;
    std::int32_t from = 0, to = 0;  // as in Fabric::Flight
    double credit_s = 0;
    Cause credit;  // the last that came back
  };
  struct Message {
    Fabric::Flight flight;
    std::int32_t link = 0;  // once taken, it goes back to the sender as a credit
    std::int32_t next = -1;
    Cause cause;  // of whoever waits for it; its at_s is when it was there
  };
  struct Node {
    std::int32_t before, track;
    std::uint32_t loop, step, slice;
    std::int32_t iteration;
    PathStep::After after;
    double start_s, end_s;
  };

  bool turn(std::int32_t rank, double now_s);
  bool start(Track& track, std::int32_t number, double now_s);
  void finish(Track& track, double now_s);
  double cost_s(const Track& track, const Step& step, double now_s);
  double shared_s(const Track& track, const Step& step, double now_s);
  void note(Track& track, std::int32_t number, double now_s, double end_s);
  void next_step(Track& track);

  std::int32_t link(std::int32_t from, std::int32_t delta, std::int32_t channel);
  void launch(Track& track, double now_s);
  void arrive(std::int32_t message, double now_s);
  void give_credit(std::int32_t message, double now_s);
  void wake(std::int32_t track, double now_s);
  void queue(std::int32_t rank, double at_s);
  std::uint64_t length(const Track& track, const Step& step) const;
  Status standstill() const;
  std::vector<PathStep> path(std::uint64_t& length) const;

  std::span<const Plan> plans_;
  std::int32_t world_, period_, tracks_per_rank_ = 0, credits_ = 1;
  const Cluster& cluster_;
  const SimulationOptions& options_;
  Slices slices_;
  Lengths full_, short_;  // of every slice but the last, of the last
  std::uint64_t stride_ = 1;
  Fabric fabric_;

  std::vector<Track> tracks_;
  std::vector<Processor> processors_;
  std::vector<Cause> cores_;  // what each ran last
  std::vector<Link> links_;
  LinkTable table_;
  std::vector<Message> messages_;
  std::vector<std::int32_t> free_;
  EventQueue events_;
  std::vector<Node> nodes_;
  bool keeps_path_;

  double time_s_ = 0;
  std::int32_t last_node_ = -1;
  std::uint32_t rounds_ = 0;
  std::uint64_t done_events_ = 0, sent_messages_ = 0, sent_signals_ = 0;
  std::array<std::uint64_t, kLinkClasses> bytes_{};
};

}  // namespace shoal::plan
