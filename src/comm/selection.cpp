// SPDX-License-Identifier: Apache-2.0
#include "comm/selection.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <utility>

#include "comm/board_limits.h"
#include "comm/exchange_time.h"
#include "compress/codecs/codec.h"
#include "engine/boards.h"
#include "plan/counters.h"
#include "plan/placed.h"
#include "plan/simulator/simulator.h"
#include "transports/transports.h"

namespace shoal::comm {
namespace {

using algorithms::Algorithm;

// A plan set that takes longer to price than this is not worth considering without being asked for.
constexpr std::uint64_t kMaxEvents = 1'000'000;
// Larger worlds are priced as a smaller one of the same shape: which algorithm is best hardly changes any more, while the time to
// find out grows with the square of the world, and every rank of a host takes it at once.
constexpr std::int32_t kMostPriced = 16;
// Vectors of so many bytes between ranks with a processor each, and slices that they have on their way (measured: two ranks, 16
// MiB a third faster than with two, 4 MiB no slower).
constexpr Bytes kLongCall{8 << 20};
constexpr int kLongCallsInFlight = 4;
// Where ranks outnumber processors every message also waits for the scheduler.
constexpr double kCrowdedOverhead_s = 1e-6;
// More than any plan uses up.
constexpr std::int32_t kUnlimitedCredits = 64;
// Between hosts of which nothing is known, and where no transport states its own figures, there is a network: 10 Gb/s, as tcp's
// overhead and latency have it.
constexpr double kNetwork_Bps = 1.25e9;

// Within a host tcp has no network behind it, but both processors do what a network card would: measured, of a message.
constexpr double kLoopbackLatency_s = 5e-6, kLoopbackOverhead_s = 7e-6;

link::Capabilities capabilities_of(std::string_view transport) {
  for (const link::Transport* each : transports::transports())
    if (each->name() == transport) return each->capabilities();
  return {};
}

// The three numbers of a wire, where they are known better.
void replace(link::Capabilities& stated, const Calibration::Wire& measured) {
  if (measured.latency_s > 0) stated.latency_s = measured.latency_s;
  if (measured.overhead_s > 0) stated.overhead_s = measured.overhead_s;
  if (measured.bandwidth_Bps > 0) stated.bandwidth_Bps = measured.bandwidth_Bps;
}

// What the model is made of: as the transports state it, or as it was measured.
struct Figures {
  link::Capabilities near, far;
  double copy_Bps = 0, reduce_Bps = 0;
};

Figures figures_of(const Situation& situation, const Settings& settings, std::string_view near_transport) {
  Figures figures{.near = capabilities_of(near_transport), .far = capabilities_of("tcp")};
  figures.far.bandwidth_Bps = situation.network_Bps > 0 ? situation.network_Bps : kNetwork_Bps;
  replace(figures.far, settings.network);
  if (situation.network_Bps > 0) figures.far.bandwidth_Bps = std::min(figures.far.bandwidth_Bps, situation.network_Bps);
  if (near_transport == "tcp") {
    figures.near.latency_s = kLoopbackLatency_s;
    figures.near.overhead_s = kLoopbackOverhead_s;
  }
  if (!settings.calibration) {
    figures.copy_Bps = figures.reduce_Bps = figures.near.bandwidth_Bps;
    return figures;
  }
  const Calibration& measured = *settings.calibration;
  if (measured.within_transport == near_transport) replace(figures.near, measured.within);
  replace(figures.far, measured.between);
  if (situation.order.slowest_Bps > 0) figures.far.bandwidth_Bps = situation.order.slowest_Bps;
  // Through memory that both ends map a message is as fast as it is copied; a stream over a socket says less of copies.
  const double stated = figures.near.bandwidth_Bps;
  figures.copy_Bps = measured.copy_Bps > 0 ? measured.copy_Bps : stated;
  if (near_transport == "shm") figures.copy_Bps = std::min(figures.copy_Bps, stated);
  figures.reduce_Bps = measured.reduce_Bps > 0 ? measured.reduce_Bps : stated;
  return figures;
}

// Where ranks change partners, streams that leave or enter one port at once share it packet by packet, which the model does not
// see: the first of two messages is there later. Measured at 1 Gbit/s with halving_doubling, beside a ring: 1.1.
constexpr double kSharedPort = 1.1;

// Within a host streams are the work of the ranks' processors. The model, for which a rank's streams are wires that carry data by
// themselves, takes too well of plans that keep several lanes busy at once. Measured beside plans of one lane: 1.4 to 1.8 with
// double_tree at 32 KiB and two_rings at 64 KiB, 1.1 and less at 1 MiB.
constexpr double kSharedProcessor = 1.3;

// Over sockets a message costs system calls and packets of its own, and its end a short packet: longer ones pay, as long as
// enough of them are left to overlap. Through shared memory shorter ones do, whose slots stay in the second-level cache.
constexpr std::size_t kStreamSlices = 4;     // times the usual one
constexpr std::size_t kSlicesToOverlap = 4;  // of a chunk

// Between hosts every message wakes its receiver, and whatever the devices and kernels on the way keep of it is renewed, which
// the model does not see: shorter slices must be predicted to save so much of the time. Measured over verbs of software, 4 MiB
// from one host to another in slices of 256 KiB and of the 16 KiB that would save 1 part in 50: 1.2. Within a host the same holds
// of a wire that SHOAL_SHIM makes so slow that a receiver sleeps between two messages: 16 MiB at 1 Gbit/s in slices of 4 KiB
// lengthened a computation beside it by 60 %, in slices of 64 KiB by 20 %. What comes faster than a sleeper wakes is found
// together.
constexpr double kWorthShorter = 1. / 16;
constexpr double kWakeUp_s = 100e-6;

// Whether ranks of one host reach each other by sockets alone.
bool is_tcp_within(const Situation& situation, const Settings& settings) { return settings.shm_disable && !situation.mappable; }

// The length that all ranks know. Of all-to-all-v each knows its own blocks only, so the choice must not look at them.
Bytes agreed_length(const engine::Call& call, const Settings& settings) {
  return call.collective == plan::Collective::all_to_all_v ? settings.tuning.slice : size_of(call.count, call.type);
}

// Two sets of slots, as the model has them: pieces are as long as boards take.
constexpr Bytes kShownAtOnce{2 * engine::Boards::kSlotBytes};

// What a choice is made for: whole elements, the next power of two of bytes.
Bytes representative(const engine::Call& call, const Settings& settings) {
  const std::size_t bytes = agreed_length(call, settings).value;
  return {std::max(std::bit_ceil(std::max<std::size_t>(bytes, 1)), element_bytes(call.type))};
}

// Of two that can run: of those over boards the one for shorter calls, then those that are priced.
bool wins(const Candidate& a, const Candidate& b) {
  if (a.limit.has_value() != b.limit.has_value()) return a.limit.has_value();
  return a.limit != b.limit ? a.limit < b.limit : a.time_s < b.time_s;
}

Status nothing_allowed(const engine::Call& call, const Settings& settings) {
  return fail(Code::invalid_usage, "{}: no algorithm that is allowed ({}) can do it in {} numerics", engine::describe(call),
              settings.algorithm_text.empty() ? "all are" : settings.algorithm_text, engine::name_of(call.numerics));
}

// "0, 2, 1, 3"; of many the first.
std::string text_of(const std::vector<Rank>& ranks) {
  constexpr std::size_t kNamed = 64;
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamed); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i].value);
  return text + (ranks.size() > kNamed ? ", ..." : "");
}

// Whether some rank sends to several others.
bool changes_partners(const std::vector<plan::Plan>& plans) {
  for (const plan::Plan& each : plans) {
    std::int32_t only = -1;
    bool changes = false;
    for (const plan::Lane& lane : each.lanes)
      plan::for_each_step(lane, [&](const plan::Step& step, std::int32_t i) {
        if (!plan::sends(step.op) || !plan::carries_data(step.op)) return;
        changes |= only != -1 && only != step.to.at(i);
        only = step.to.at(i);
      });
    if (changes) return true;
  }
  return false;
}

// Whether every chunk's reduction is finished by one rank alone.
bool finishes_once(const std::vector<plan::Plan>& plans) {
  std::vector<std::int32_t> finisher(static_cast<std::size_t>(plan::chunk_space(plans.front())), -1);
  bool once = true;
  for (const plan::Plan& each : plans)
    for (const plan::Lane& lane : each.lanes)
      plan::for_each_step(lane, [&](const plan::Step& step, std::int32_t i) {
        if (!plan::reduces(step.op) || !step.final || step.target.buffer != plan::Buffer::output) return;
        for (std::int32_t t = 0; t < step.target.size; ++t) {
          std::int32_t& who = finisher[static_cast<std::size_t>(step.target.at(t, i))];
          once &= who == -1 || who == each.rank.value;
          who = each.rank.value;
        }
      });
  return once;
}

// Rings take the ways between neighbours in their order alone.
plan::Cluster cluster_for(const std::vector<plan::Plan>& plans, plan::Cluster cluster, const RankOrder& order) {
  if (cluster.hosts > 1 && order.neighbours_Bps > order.slowest_Bps && plan::can_be_placed(plans))
    cluster.nics.out_Bps = cluster.nics.in_Bps = order.neighbours_Bps;
  return cluster;
}

// A wire for each two ranks, the same within hosts and between them; what is under way is limited by no link.
void slow_down(plan::Cluster& cluster, const Shim& shim) {
  const std::int32_t hosts = std::exchange(cluster.hosts, 1);
  cluster.ranks_per_host *= hosts;
  cluster.cores_per_host *= hosts;
  cluster.within.latency_s = (hosts > 1 ? cluster.nics.latency_s : cluster.within.latency_s) +
                             std::chrono::duration<double>(shim.latency + shim.jitter / 2).count();
  cluster.within.bandwidth_Bps = std::min(hosts > 1 ? cluster.nics.out_Bps : cluster.within.bandwidth_Bps, shim.bandwidth_Bps);
  cluster.credits = kUnlimitedCredits;
}

}  // namespace

plan::Cluster cluster_of(const Situation& situation, const Settings& settings) {
  const std::int32_t per_host = situation.group > 0 ? situation.group : std::max(1, situation.world.value / situation.hosts);
  const bool tcp_within = is_tcp_within(situation, settings);
  const auto [near, far, copy_Bps, reduce_Bps] = figures_of(situation, settings, tcp_within ? "tcp" : "shm");
  plan::Cluster cluster;
  cluster.name = "this job";
  cluster.ranks_per_host = per_host;
  cluster.hosts = (situation.world.value + per_host - 1) / per_host;
  cluster.credits = settings.credits;
  cluster.overhead_s = (situation.hosts > 1 ? far : near).overhead_s + (situation.crowded ? kCrowdedOverhead_s : 0);
  // A message is copied into memory that both ends map, and read or reduced out of it.
  cluster.copy_Bps = copy_Bps;
  cluster.reduce_Bps = reduce_Bps;
  cluster.cores_per_host = situation.crowded ? settings.processors : 0;
  // A stream is as fast as the processors that copy: one rank's, whoever it talks to, or those that all share.
  cluster.within = {
      .through = !tcp_within         ? plan::Within::pairs
                 : situation.crowded ? plan::Within::bus
                                     : plan::Within::switched,
      .latency_s = near.latency_s,
      .bandwidth_Bps = tcp_within ? near.bandwidth_Bps * (situation.crowded ? settings.processors : 1) : plan::kUnlimited,
      .credit_s = near.latency_s};
  if (situation.hosts > 1)
    cluster.nics = {.per_host = 1,
                    .of_local = {},
                    .latency_s = far.latency_s,
                    .out_Bps = far.bandwidth_Bps,
                    .in_Bps = far.bandwidth_Bps,
                    .credit_s = far.latency_s};
  if (settings.shim) slow_down(cluster, *settings.shim);
  return cluster;
}

Bytes longest_message(const Situation& situation, const Settings& settings) {
  const bool longer = situation.streams && !settings.slice_is_given;
  return {settings.tuning.slice.value * (longer ? kStreamSlices : 1)};
}

Tuner::Tuner(const Settings& settings, const Situation& situation)
    : settings_(settings),
      situation_(situation),
      priced_(smaller(situation, kMostPriced)),
      cluster_(cluster_of(priced_, settings)) {}

int Tuner::length_class(const engine::Call& call) const {
  return static_cast<int>(std::bit_width(agreed_length(call, settings_).value));
}

Choice& Tuner::remembered(const engine::Call& call) {
  const auto length = static_cast<std::size_t>(length_class(call));
  Remembered& of_collective = chosen_[static_cast<std::size_t>(call.collective)];
  if (call.codec == nullptr) [[likely]]
    return (call.numerics == engine::Numerics::ordered ? of_collective.ordered : of_collective.fast)[length];
  if (call.codec != coded_with_) {
    for (Remembered& each : chosen_) each.coded = {};
    coded_with_ = call.codec;
  }
  return of_collective.coded[length];
}

Result<Choice> Tuner::choose(const engine::Call& call) {
  Choice& chosen = remembered(call);
  if (chosen.algorithm != nullptr) [[likely]]
    return chosen;
  std::vector<Candidate> able;
  for (const Algorithm& each : algorithms::all())
    if (each.collective == call.collective)
      if (Candidate candidate = look_at(each, call); candidate.refusal.empty()) able.push_back(std::move(candidate));
  // What is measured to be the quickest needs no price, which takes longer to find than many a call.
  const bool measured = std::ranges::any_of(able, [](const Candidate& each) { return each.limit.has_value(); });
  const Candidate* best = nullptr;
  for (Candidate& each : able) {
    if (!measured && !is_only_choice(call, *each.choice.algorithm)) price(each, call);
    if (each.refusal.empty() && (best == nullptr || wins(each, *best))) best = &each;
  }
  if (best == nullptr) return nothing_allowed(call, settings_);
  chosen = best->choice;
  if (keeps_more_in_flight(call)) chosen.tuning.in_flight = std::max(chosen.tuning.in_flight, kLongCallsInFlight);
  return chosen;
}

// Ranks with a processor each hand long vectors over through memory: what is on its way is then better in the shared cache than
// in the sender's own.
bool Tuner::keeps_more_in_flight(const engine::Call& call) const {
  return situation_.mappable && !situation_.crowded && settings_.tuning.in_flight == engine::Tuning{}.in_flight &&
         representative(call, settings_) >= kLongCall;
}

// Nothing is weighed against it, not even another length of slices.
bool Tuner::is_only_choice(const engine::Call& call, const Algorithm& algorithm) const {
  const bool one_slice = longest_message(situation_, settings_) == settings_.tuning.slice;
  return situation_.world.value == 1 || (one_slice && settings_.algorithms.only(call.collective) == &algorithm);
}

Candidate Tuner::look_at(const Algorithm& algorithm, const engine::Call& call) const {
  Candidate candidate{.choice = {&algorithm, settings_.tuning}};
  const auto refuse = [&](std::string why) {
    candidate.refusal = std::move(why);
    return candidate;
  };
  if (!settings_.algorithms.allows(algorithm)) return refuse(settings_.algorithm_text + " leaves it out");
  const plan::Request request{.world = situation_.world, .root = call.root, .group = situation_.close()};
  const plan::Plan first = algorithm.build(request);
  if (!first.refusal.empty()) return refuse(std::string(first.refusal));
  if ((first.shared > 0 || first.boards != plan::Boards::unused) && !situation_.mappable)
    return refuse("not all ranks can map each other's memory");
  if (first.credits > settings_.credits)
    return refuse(fmt::format("needs links of {} messages, SHOAL_CREDITS is {}", first.credits, settings_.credits));
  if (call.numerics == engine::Numerics::ordered && first.order != plan::Order::butterfly && situation_.world.value > 1)
    return refuse("adds in another order than ordered numerics promise");
  if (call.codec != nullptr && situation_.world.value > 1) {
    if (first.shared > 0) return refuse("sends nothing that could be encoded");
    if (!finishes_once(plans_for(algorithm, priced_, call.root)))
      return refuse("ends on several ranks, which would round differently");
  }
  if (const std::optional<Bytes> limit = board_limit(first, situation_)) {
    // Of all lengths that get the same choice, the least.
    const Bytes shown = shown_bytes(first, {std::bit_floor(agreed_length(call, settings_).value)});
    if (limit->value > 0 && shown <= *limit)
      candidate.limit = limit;
    else if (!settings_.algorithms.restricts(call.collective))
      return refuse(fmt::format("slower, by measurement, than others where a rank shows more than {} bytes", limit->value));
  }
  return candidate;
}

void Tuner::price(Candidate& candidate, const engine::Call& call) const {
  const std::vector<plan::Plan> plans = plans_for(*candidate.choice.algorithm, priced_, call.root);
  const Bytes bytes = representative(call, settings_);
  if (call.codec == nullptr)
    price(candidate, plans, bytes, element_bytes(call.type));
  else
    price(candidate, plans, {call.codec->wire_bytes(bytes.value / sizeof(float))}, 1);
}

void Tuner::count(Candidate& candidate, const engine::Call& call) const {
  const std::vector<plan::Plan> plans = plans_for(*candidate.choice.algorithm, situation_, call.root);
  const Result<plan::Counters> counted = plan::count(plans, representative(call, settings_), element_bytes(call.type));
  if (!counted.is_ok()) return;
  candidate.rounds = counted->rounds.size();
  for (const plan::Counters::Node& node : counted->nodes) candidate.sent = std::max(candidate.sent, node.sent);
  candidate.memory = {counted->scratch + counted->shared};
}

std::vector<plan::Plan> Tuner::plans_for(const Algorithm& algorithm, const Situation& situation, Rank root) const {
  plan::Request request{.world = situation.world, .root = {root.value % situation.world.value}, .group = situation.close()};
  std::vector<plan::Plan> plans;
  plans.reserve(static_cast<std::size_t>(situation.world.value));
  for (std::int32_t r = 0; r < situation.world.value; ++r) {
    request.rank = {r};
    plans.push_back(algorithm.build(request));
  }
  return plans;
}

Result<double> Tuner::time_of(const std::vector<plan::Plan>& plans, const plan::Cluster& cluster, Bytes bytes,
                              std::size_t element_bytes, Bytes slice) const {
  const Result<double> alone = plan::price(plans, cluster_for(plans, cluster, situation_.order),
                                           {.bytes = bytes,
                                            .element_bytes = element_bytes,
                                            .slice = slice,
                                            .window = kShownAtOnce,
                                            .in_flight = plans.front().shared > 0 ? 1 : settings_.tuning.in_flight,
                                            .max_events = kMaxEvents,
                                            .path_steps = 0});
  if (!alone.is_ok()) return alone;
  if (cluster.hosts > 1) return *alone * (changes_partners(plans) ? kSharedPort : 1);
  return *alone *
         (plans.front().lanes.size() > 1 && is_tcp_within(situation_, settings_) && !settings_.shim ? kSharedProcessor : 1);
}

// With the slices that suit the links, or shorter ones of a plan whose time falls with them.
void Tuner::price(Candidate& candidate, const std::vector<plan::Plan>& plans, Bytes bytes, std::size_t element_bytes) const {
  const plan::Plan& first = plans.front();
  const std::size_t usual = settings_.tuning.slice.value;
  const std::size_t chunk = bytes.value / static_cast<std::size_t>(std::max(first.chunks, 1));
  const std::size_t longest =
      std::clamp(std::bit_floor(chunk / kSlicesToOverlap), usual, longest_message(situation_, settings_).value);
  const bool wakes =
      cluster_.hosts > 1 || (settings_.shim && static_cast<double>(usual) / settings_.shim->bandwidth_Bps > kWakeUp_s);
  Status why;
  bool priced = false;
  for (const std::size_t slice : {longest, usual, usual / 4, usual / 16}) {
    const bool worth_it = first.pipelined && !settings_.slice_is_given && slice < longest && slice >= 1024;
    if (slice == longest ? priced : !worth_it) continue;
    const Result<double> time = time_of(plans, cluster_, bytes, element_bytes, {slice});
    if (!time.is_ok()) {
      why = time.status();
      break;
    }
    if (priced && *time >= candidate.time_s * (wakes ? 1 - kWorthShorter : 1)) continue;
    priced = true;
    candidate.time_s = *time;
    candidate.choice.tuning.slice = {slice};
  }
  // One that was asked for by name runs, whatever it costs.
  if (!priced && settings_.algorithms.only(first.collective) != candidate.choice.algorithm) candidate.refusal = why.text();
}

std::vector<Candidate> Tuner::candidates(const engine::Call& call) const {
  std::vector<Candidate> all;
  for (const Algorithm& each : algorithms::all())
    if (each.collective == call.collective) {
      Candidate& candidate = all.emplace_back(look_at(each, call));
      if (candidate.refusal.empty() && situation_.world.value > 1) price(candidate, call);
      if (candidate.refusal.empty() && situation_.world.value > 1) count(candidate, call);
    }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
    return a.refusal.empty() && wins(a, b);
  });
  return all;
}

Result<double> Tuner::predict(const engine::Call& call) const {
  const std::vector<Candidate> all = candidates(call);
  if (all.empty() || !all.front().refusal.empty()) return nothing_allowed(call, settings_);
  const Choice& winner = all.front().choice;
  const Bytes bytes{std::max(size_of(call.count, call.type).value, element_bytes(call.type))};
  const auto time = [&](const Situation& situation) {
    return time_of(plans_for(*winner.algorithm, situation, call.root), cluster_of(situation, settings_), bytes,
                   element_bytes(call.type), winner.tuning.slice);
  };
  // Of a world that takes too long to simulate, the smaller one's.
  Result<double> whole = time(situation_);
  return whole.is_ok() ? whole : time(priced_);
}

Result<double> Tuner::predict(std::span<const engine::Transfer> transfers, Rank self) const {
  return exchange_time(transfers, self, situation_.world, cluster_of(situation_, settings_),
                       longest_message(situation_, settings_));
}

double Tuner::expect_power(const engine::Call& call, std::size_t power) {
  double& known = chosen_[static_cast<std::size_t>(call.collective)].expected_s[power];
  if (known > 0) return known;
  engine::Call like = call;
  like.type = DataType::uint8;
  like.count = {std::size_t{1} << power};
  const Result<Choice> choice = choose(like);
  if (!choice.is_ok()) return std::numeric_limits<double>::infinity();
  const Result<double> time =
      time_of(plans_for(*choice->algorithm, priced_, call.root), cluster_, {like.count.value}, 1, choice->tuning.slice);
  known = time.is_ok() ? *time : std::numeric_limits<double>::infinity();
  return known;
}

double Tuner::expect(const engine::Call& call) {
  const std::size_t bytes = std::max<std::size_t>(size_of(call.count, call.type).value, 1);
  const auto power = static_cast<std::size_t>(std::bit_width(bytes) - 1);
  const double low = expect_power(call, power), high = expect_power(call, power + 1);
  const auto start = static_cast<double>(std::size_t{1} << power);
  return low + (high - low) * (static_cast<double>(bytes) - start) / start;
}

std::string Tuner::explain(const engine::Call& call) const {
  const std::vector<Candidate> all = candidates(call);
  std::string text =
      fmt::format("{}, {} numerics, {} ranks on {} host{}{}: priced at {} bytes\n", plan::name_of(call.collective),
                  engine::name_of(call.numerics), situation_.world.value, situation_.hosts, situation_.hosts == 1 ? "" : "s",
                  situation_.crowded ? ", more ranks than processors" : "", representative(call, settings_).value);
  if (priced_.world != situation_.world)
    text += fmt::format("times are of {} ranks on {} hosts, which stand for all\n", priced_.world.value, priced_.hosts);
  if (!situation_.order.ranks.empty()) text += fmt::format("rings pass the ranks {}\n", text_of(situation_.order.ranks));
  if (situation_.node > 0)
    text += fmt::format("hierarchical plans follow the borders of NUMA nodes, each {} ranks\n", situation_.node);
  if (situation_.order.slowest_Bps > 0)
    text += fmt::format("slowest way between hosts {:g} Gb/s, between neighbours in rings {:g} Gb/s\n",
                        situation_.order.slowest_Bps * 8 / 1e9, situation_.order.neighbours_Bps * 8 / 1e9);
  else if (situation_.hosts > 1 && situation_.network_Bps > 0)
    text += fmt::format("the slowest host's network carries {:g} Gb/s\n", situation_.network_Bps * 8 / 1e9);
  if (settings_.calibration) text += fmt::format("by SHOAL_CALIBRATION: {}\n", text_of(*settings_.calibration, ' '));
  text +=
      fmt::format("{:<26} {:>12} {:>7} {:>12} {:>12} {:>9}\n", "algorithm", "time us", "rounds", "sent B", "memory B", "slice B");
  for (const Candidate& each : all) {
    if (!each.refusal.empty()) {
      text += fmt::format("{:<26} left out: {}\n", each.choice.algorithm->name, each.refusal);
      continue;
    }
    text += fmt::format("{:<26} {:>12.2f} {:>7} {:>12} {:>12} {:>9}\n", each.choice.algorithm->name, each.time_s * 1e6,
                        each.rounds, each.sent, each.memory.value, each.choice.tuning.slice.value);
  }
  if (all.empty() || !all.front().refusal.empty()) return text + "nothing can run\n";
  const Candidate& winner = all.front();
  text += fmt::format("{} runs: ", winner.choice.algorithm->name);
  if (all.size() == 1 || !all[1].refusal.empty()) return text + "it is the only one that can\n";
  if (winner.limit)
    return text + fmt::format("measured to be the quickest up to {} bytes that a rank shows\n", winner.limit->value);
  const Candidate& second = all[1];
  return text + fmt::format("{:.2f} us where {} takes {:.2f} us ({} rounds against {}, {} bytes sent against {})\n",
                            winner.time_s * 1e6, second.choice.algorithm->name, second.time_s * 1e6, winner.rounds, second.rounds,
                            winner.sent, second.sent);
}

}  // namespace shoal::comm
