// SPDX-License-Identifier: Apache-2.0
// What simulate, compare and explain ask the simulator: a call on a cluster, sizes in the field's convention, slices as the
// library cuts them. Plans are built when they are needed, so that large worlds fit. Pure but for cluster files.
#pragma once

#include <cstdint>
#include <string>

#include "algorithms/algorithms.h"
#include "plan/simulator/simulator.h"
#include "tools/plan/arguments.h"

namespace shoal::plan_tool {

inline constexpr std::uint64_t kLibrarySlice = 64 << 10;
inline constexpr std::size_t kElementBytes = 4;

// Where and how a call runs, as options say it.
struct Machine {
  std::string cluster = "rail1024";
  bool slice_given = false;             // else: the library's, whole where that would be too many events
  std::uint64_t slice = kLibrarySlice;  // 0: whole
  int in_flight = 2;
  std::uint64_t max_events = 200'000'000;
  std::uint64_t auto_events = 20'000'000;  // above this, slices that were not asked for become whole
};
void take_machine(cli::CommandLine& line, Machine& machine);  // --cluster, --slice, --in-flight, --max-events

// Fills in the group where none was given: the cluster's hosts, where they are all equally full.
Result<plan::Cluster> cluster_of(const Machine& machine, Target& target);

// `bytes` of the call (the vector, or all blocks of a rank together) as the simulator counts: of the vector, or of one block.
// Fails on parts of elements; blocks are rounded down to elements.
Result<std::uint64_t> simulator_bytes(plan::Collective collective, std::int32_t world, std::uint64_t bytes);

// busbw = algbw * this (nccl-tests' convention), algbw = bytes of the call / time.
double bus_factor(plan::Collective collective, std::int32_t world);

struct Prediction {
  plan::Simulation simulation;
  std::uint64_t slice = 0;  // 0: whole
};
Result<Prediction> predict(const algorithms::Algorithm& algorithm, const plan::Request& request, std::uint64_t bytes,
                           const plan::Cluster& cluster, const Machine& machine, plan::SimulationOptions options);

// Seconds only: many slices are extrapolated from fewer.
Result<double> predict_time(const algorithms::Algorithm& algorithm, const plan::Request& request, std::uint64_t bytes,
                            const plan::Cluster& cluster, const Machine& machine);

}  // namespace shoal::plan_tool
