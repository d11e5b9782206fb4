// SPDX-License-Identifier: Apache-2.0
// shoal-plan explain: every algorithm that could run a call, what it costs, and why the winner wins.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/counters.h"
#include "tools/plan/prediction.h"
#include "tools/plan/units.h"

namespace shoal::plan_tool {
namespace {

using nlohmann::ordered_json;
using namespace plan;

constexpr std::int32_t kMostRanksCounted = 1024;

struct Candidate {
  const algorithms::Algorithm* algorithm;
  std::string refused;   // not empty: why it is out; the rest is then void
  double seconds = 0;    // predicted
  double latency_s = 0;  // of that, what stays when the data shrink to an element a chunk
  std::uint64_t rounds = 0;
  std::uint64_t sent = 0;    // most bytes that a rank sends
  std::uint64_t memory = 0;  // most bytes of scratch and shared slots of a rank
  std::string reason;
};

struct Call {
  Target target;
  Machine machine;
  Cluster cluster;
  std::uint64_t bytes = 1 << 20;  // of the call
  std::uint64_t block = 0;        // as the simulator counts
  bool ordered = false;
};

// Slots are as long as a message's share of a chunk; the ones of scratch once for each slice in flight, shared ones twice.
std::uint64_t memory_of(std::span<const Plan> plans, const Call& call) {
  std::int32_t widest = 1, scratch = 0;
  for (const Plan& plan : plans) {
    widest = std::max(widest, plan::widest(plan));
    scratch = std::max(scratch, plan.scratch);
  }
  const std::uint64_t chunk = chunk_range({call.block / kElementBytes}, plans[0].chunks, 0).length() * kElementBytes;
  const std::uint64_t slice =
      call.machine.slice == 0 ? chunk : std::min(chunk, call.machine.slice / static_cast<std::uint64_t>(widest));
  return slice * (static_cast<std::uint64_t>(scratch) * static_cast<std::uint64_t>(call.machine.in_flight) +
                  static_cast<std::uint64_t>(plans[0].shared) * 2);
}

Candidate candidate_of(const algorithms::Algorithm& algorithm, const Call& call) {
  Candidate c{&algorithm};
  const Request request = call.target.request();
  const auto plans = plans_of(algorithm, request);
  if (!plans.is_ok()) {
    c.refused = algorithm.build(request).refusal;
    if (c.refused.empty()) c.refused = plans.status().text();
    return c;
  }
  if (call.ordered && plans->front().order != Order::butterfly && call.target.world > 1 &&
      is_reduction(*call.target.collective)) {
    c.refused = "adds in another order than recursive doubling, which ordered numerics promise";
    return c;
  }
  const auto seconds = predict_time(algorithm, request, call.block, call.cluster, call.machine);
  const std::uint64_t least = static_cast<std::uint64_t>(plans->front().chunks) * kElementBytes;
  const auto latency = predict_time(algorithm, request, std::min(least, call.block), call.cluster, call.machine);
  const auto counted = count(*plans, {call.block}, kElementBytes);
  for (const Status& status : {seconds.status(), latency.status(), counted.status()})
    if (!status.is_ok() && c.refused.empty()) c.refused = status.text();
  if (!c.refused.empty()) return c;
  c.seconds = *seconds;
  c.latency_s = *latency;
  c.rounds = counted->rounds.size();
  for (const Counters::Node& node : counted->nodes) c.sent = std::max(c.sent, node.sent + node.direct_read);
  c.memory = memory_of(*plans, call);
  return c;
}

// Which part of its time puts it behind the winner.
std::string reason_of(const Candidate& c, const Candidate& winner) {
  if (c.seconds <= winner.seconds * 1.001) return "as fast";
  const double latency = c.latency_s - winner.latency_s, total = c.seconds - winner.seconds, bytes = total - latency;
  std::string text = fmt::format("{:.3g} x: ", c.seconds / winner.seconds);
  if (latency >= bytes) {
    text += fmt::format("{} more of latency", seconds_text(latency));
    if (c.rounds > winner.rounds) text += fmt::format(", {} rounds against {}", c.rounds, winner.rounds);
    return text;
  }
  text += fmt::format("{} more for bytes", seconds_text(bytes));
  if (c.sent > winner.sent + winner.sent / 50)
    return text + fmt::format(", {} from a rank against {}", bytes_text(static_cast<double>(c.sent)),
                              bytes_text(static_cast<double>(winner.sent)));
  return text + ": its messages queue on slower or busier links, or overlap less";
}

std::vector<Candidate> candidates_of(const Call& call) {
  std::vector<Candidate> all;
  for (const algorithms::Algorithm& each : algorithms::all())
    if (each.collective == *call.target.collective) all.push_back(candidate_of(each, call));
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.refused.empty() != b.refused.empty() ? a.refused.empty() : a.refused.empty() && a.seconds < b.seconds;
  });
  if (all.front().refused.empty()) {
    const Candidate& winner = all.front();
    for (Candidate& c : all) c.reason = &c == &winner ? "" : c.refused.empty() ? reason_of(c, winner) : c.refused;
    all.front().reason = fmt::format("wins: {} of latency, {} for bytes", seconds_text(winner.latency_s),
                                     seconds_text(winner.seconds - winner.latency_s));
  }
  return all;
}

void print(const Call& call, const std::vector<Candidate>& all) {
  const bool data = *call.target.collective != Collective::barrier;
  fmt::print("{}{} among {} ranks on {}{}{}\n", name_of(*call.target.collective),
             data ? " of " + bytes_text(static_cast<double>(call.bytes)) : "", call.target.world, call.cluster.name,
             call.target.group > 0 ? fmt::format(", groups of {}", call.target.group) : "",
             call.ordered ? ", ordered numerics" : "");
  fmt::print("latency: the time that stays when the data shrink to an element a chunk\n\n");
  fmt::print("{:25} {:>9} {:>9} {:>7} {:>10} {:>10}  {}\n", "algorithm", "time", "latency", "rounds", "sent", "memory", "why");
  for (const Candidate& c : all)
    if (c.refused.empty())
      fmt::print("{:25} {:>9} {:>9} {:>7} {:>10} {:>10}  {}\n", c.algorithm->name, seconds_text(c.seconds),
                 seconds_text(c.latency_s), c.rounds, bytes_text(static_cast<double>(c.sent)),
                 bytes_text(static_cast<double>(c.memory)), c.reason);
    else
      fmt::print("{:25} {:>9} {:>9} {:>7} {:>10} {:>10}  {}\n", c.algorithm->name, "-", "-", "-", "-", "-", c.refused);
  fmt::print(
      "\nsent: most bytes that a rank sends, or reads from the memory of others; memory: scratch and shared slots of a rank\n");
}

void print_json(const Call& call, const std::vector<Candidate>& all) {
  ordered_json rows = ordered_json::array();
  for (const Candidate& c : all) {
    if (!c.refused.empty()) {
      rows.push_back({{"algorithm", c.algorithm->name}, {"refused", c.refused}});
      continue;
    }
    rows.push_back({{"algorithm", c.algorithm->name},
                    {"time_s", c.seconds},
                    {"latency_s", c.latency_s},
                    {"rounds", c.rounds},
                    {"sent_bytes", c.sent},
                    {"memory_bytes", c.memory},
                    {"why", c.reason}});
  }
  const ordered_json json = {{"collective", name_of(*call.target.collective)},
                             {"world", call.target.world},
                             {"bytes", call.bytes},
                             {"cluster", call.cluster.name},
                             {"numerics", call.ordered ? "ordered" : "fast"},
                             {"candidates", std::move(rows)}};
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

Ending explain(const Words& words) {
  Call call;
  call.machine.max_events = 20'000'000;
  call.machine.auto_events = 10'000'000;
  bool json = false;
  cli::CommandLine line = command_line("explain", "which algorithm wins a call, and why the others do not.",
                                       "COLLECTIVE [--world N] [--bytes SIZE] [OPTIONS]");
  take_collective(line, call.target);
  take_world(line, call.target);
  line.size("-b,--bytes", call.bytes, "Of the vector; or of all blocks of a rank together");
  take_machine(line, call.machine);
  line.value("--numerics", "What sums promise: fast, ordered", "MODE", [&call](const std::string& text) {
    call.ordered = text == "ordered";
    return text == "ordered" || text == "fast" ? "" : "is neither fast nor ordered";
  });
  line.flag("--json", json, "As JSON");
  if (const auto ending = parse(line, words)) return *ending;
  if (Status s = complete(call.target); !s.is_ok()) return usage(s);
  if (call.target.world > kMostRanksCounted)
    return {kUsage,
            fmt::format("--world {}: at most {} ranks are explained; simulate takes more", call.target.world, kMostRanksCounted)};
  auto cluster = cluster_of(call.machine, call.target);
  if (!cluster.is_ok()) return usage(cluster.status());
  call.cluster = cluster.take();
  const auto bytes = simulator_bytes(*call.target.collective, call.target.world, call.bytes);
  if (!bytes.is_ok()) return usage(bytes.status());
  call.block = *bytes;
  const std::vector<Candidate> all = candidates_of(call);
  json ? print_json(call, all) : print(call, all);
  return {};
}

}  // namespace shoal::plan_tool
