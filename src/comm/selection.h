// SPDX-License-Identifier: Apache-2.0
// Which algorithm a call runs, and cut into which slices: every plan that may run is priced by the simulator on a model of the
// ranks' hosts, and the cheapest wins. A pure function of the call and of what all ranks agreed on.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "comm/situation.h"
#include "engine/call.h"
#include "engine/transfers.h"
#include "plan/simulator/cluster.h"

namespace shoal::comm {

struct Choice {
  const algorithms::Algorithm* algorithm = nullptr;
  engine::Tuning tuning;
};

// One algorithm as the tuner looked at it.
struct Candidate {
  Choice choice;
  std::string refusal;         // why it cannot run; empty: it can
  std::optional<Bytes> limit;  // a plan over boards that is quicker than others: for ranks that show so much at most
  double time_s = 0;           // predicted
  Bytes memory;                // scratch and shared slots of a rank
  std::uint64_t sent = 0;      // bytes that the busiest rank sends
  std::uint64_t rounds = 0;
};

// What the cost model takes the ranks' hosts and their network for: the calibration's numbers, else the transports' own.
plan::Cluster cluster_of(const Situation& situation, const Settings& settings);

// Bytes of the longest message that a choice leads to, which links must take.
Bytes longest_message(const Situation& situation, const Settings& settings);

// One rank's; remembers its choices. One thread at a time.
class Tuner {
 public:
  Tuner(const Settings& settings, const Situation& situation);

  // invalid_usage if nothing that is allowed can do it.
  Result<Choice> choose(const engine::Call& call);

  // Calls that differ in length get one choice if this is the same.
  int length_class(const engine::Call& call) const;

  // Seconds that the chosen algorithm would take, between those of the powers of two around the call's bytes: quick once these
  // are known, and the same on all ranks for calls of the same collective and length. Infinity if nothing can do it.
  double expect(const engine::Call& call);

  // All algorithms of the collective, those that can run first, the cheapest first.
  std::vector<Candidate> candidates(const engine::Call& call) const;
  // The same as text, a line each, and why the winner won.
  std::string explain(const engine::Call& call) const;

  // Seconds that the winner would take for just this length. invalid_usage as choose. In exact numerics: what the call would take
  // in fast ones, since how many digits travel depends on the data.
  Result<double> predict(const engine::Call& call) const;
  // Seconds that rank `self` is busy with these transfers, if the other ends are there and do nothing else.
  Result<double> predict(std::span<const engine::Transfer> transfers, Rank self) const;

 private:
  Candidate look_at(const algorithms::Algorithm& algorithm, const engine::Call& call) const;
  bool keeps_more_in_flight(const engine::Call& call) const;
  bool is_only_choice(const engine::Call& call, const algorithms::Algorithm& algorithm) const;
  void price(Candidate& candidate, const engine::Call& call) const;
  void count(Candidate& candidate, const engine::Call& call) const;
  std::vector<plan::Plan> plans_for(const algorithms::Algorithm& algorithm, const Situation& situation, Rank root) const;
  Result<double> time_of(const std::vector<plan::Plan>& plans, const plan::Cluster& cluster, Bytes bytes,
                         std::size_t element_bytes, Bytes slice) const;
  void price(Candidate& candidate, const std::vector<plan::Plan>& plans, Bytes bytes, std::size_t element_bytes) const;

  // Calls get one choice where their lengths are within a factor of two, and the same promise is asked for. Choices that are
  // not made yet have no algorithm.
  static constexpr std::size_t kLengths = 65;
  struct Remembered {
    std::array<Choice, kLengths> fast, ordered, coded;
    std::array<double, kLengths> expected_s{};  // of 2^i bytes, fast; 0: not known yet
  };
  Choice& remembered(const engine::Call& call);
  double expect_power(const engine::Call& call, std::size_t power);
  Settings settings_;
  Situation situation_;
  Situation priced_;  // what plans are priced for: a large world's choice must not take longer than its calls
  plan::Cluster cluster_;
  std::array<Remembered, plan::kCollectives> chosen_;
  const compress::Codec* coded_with_ = nullptr;  // what `coded` of chosen_ is for
};

}  // namespace shoal::comm
