// SPDX-License-Identifier: Apache-2.0
// Runs all ranks' plans on a cluster in virtual time: the very plans that the engine runs, cut into the same slices, on the same
// tracks. Pure and deterministic: events at the same time are taken in the order of ranks. Any thread.
//
// The machine. Slice k runs on track k mod in_flight, each track on a channel of its own. A rank's processor runs one step at a
// time: the tracks in turn, each until it has to wait, as the engine does. Sending costs it `overhead_s`; copying and reducing
// cost it bytes / copy_Bps and bytes / reduce_Bps (free if the cluster does not say). Then the message is on its way, and the
// processor goes on. A message is there alpha + bytes / bandwidth later, longer if it queues (fabric.h). A link holds `credits`
// messages; a credit is back `credit_s` after the receiver is done with the message.
//
// Not modelled: lost messages, congestion control, caches, jitter, the first call's connecting.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "plan/plan.h"
#include "plan/simulator/fabric.h"
#include "plan/simulator/symmetry.h"

namespace shoal::plan {

struct SimulationOptions {
  Bytes bytes;                    // of the vector, or of each block (all blocks are equal, also in collectives of unequal ones)
  std::size_t element_bytes = 4;  // divides bytes
  Bytes slice{0};                 // most bytes of a message; 0: the collective runs as one slice
  Bytes window{0};                // memory of a rank for shared slots, which cuts plans that have some; 0: as much as they need
  int in_flight = 2;              // slices that a lane works on at a time
  std::int32_t credits = 0;       // of links; 0: the cluster's, and never fewer than the plan needs
  bool symmetry = true;           // look for a rotation that makes a few ranks stand for all
  std::uint64_t max_events = 200'000'000;
  std::size_t top = 8;          // how many of the busiest resources are named
  std::size_t path_steps = 32;  // how many steps of the critical path are kept, the last ones; 0: none
};

// A step on the critical path, and what it had waited for.
struct PathStep {
  Rank rank;
  std::uint64_t slice = 0;
  double start_s = 0, end_s = 0;
  enum class After : std::uint8_t { start, processor, message, credit } after = After::start;
  std::string text;  // describe(step)
};

struct Simulation {
  double time_s = 0;
  double bound_s = 0;        // no algorithm can be faster on this cluster (see bound.h)
  std::uint64_t rounds = 0;  // messages on the critical path
  std::uint64_t messages = 0, signals = 0;
  std::array<std::uint64_t, kLinkClasses> bytes{};  // by LinkClass
  std::uint64_t total_bytes = 0;
  std::uint64_t peak_node_bytes = 0;  // most that one rank sends, or that one receives
  std::vector<Fabric::Use> busiest;
  std::uint64_t slices = 0;
  std::uint64_t events = 0;
  std::int32_t period = 0;  // ranks that were run; they stand for all others by symmetry if this is less than the world
  std::vector<PathStep> path;
  std::uint64_t path_length = 0;  // steps of the whole critical path; `path` has the last ones; 0 if it was too long to keep
};

Result<Simulation> simulate(std::span<const Plan> plans, const Cluster& cluster, const SimulationOptions& options);
// For worlds whose plans one would not hold all at once: plan_of(rank) is called several times a rank.
Result<Simulation> simulate(World world, const PlanOf& plan_of, const Cluster& cluster, const SimulationOptions& options);

// Seconds, for choosing among plans. Many slices are priced by the slope of fewer: after the pipeline has filled, each costs the
// same.
Result<double> price(std::span<const Plan> plans, const Cluster& cluster, const SimulationOptions& options);

}  // namespace shoal::plan
