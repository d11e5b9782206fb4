// SPDX-License-Identifier: Apache-2.0
#include "plan/simulator/run.h"

#include <algorithm>
#include <bit>

namespace shoal::plan {
namespace {

constexpr std::size_t kMaxNodes = std::size_t{1} << 21;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

Run::Run(std::span<const Plan> plans, World world, const Cluster& cluster, const SimulationOptions& options, const Slices& slices)
    : plans_(plans),
      world_(world.value),
      period_(static_cast<std::int32_t>(plans.size())),
      cluster_(cluster),
      options_(options),
      slices_(slices),
      full_(slices.slices == 0 ? 0 : slices.length(0), plans[0].chunks),
      short_(slices.slices == 0 ? 0 : slices.length(slices.slices - 1), plans[0].chunks),
      fabric_(cluster, world, period_),
      keeps_path_(options.path_steps != 0) {
  stride_ = std::min<std::uint64_t>(slices.slices, static_cast<std::uint64_t>(options.in_flight));
  credits_ = std::max(options.credits == 0 ? cluster.credits : options.credits, plans[0].credits);
  std::size_t lanes = 0;
  for (const Plan& plan : plans) lanes = std::max(lanes, plan.lanes.size());
  tracks_per_rank_ = static_cast<std::int32_t>(lanes * stride_);
  tracks_.resize(plans.size() * lanes * stride_);
  processors_.resize(plans.size());
  std::int32_t cores = 0;
  for (std::int32_t r = 0; r < period_; ++r) cores = std::max(cores, fabric_.places()[at(r)].core + 1);
  cores_.resize(at(cores));
  for (std::int32_t r = 0; r < period_; ++r) {
    const Plan& plan = plans[at(r)];
    for (std::size_t l = 0; l < plan.lanes.size(); ++l)
      for (std::uint64_t i = 0; i < stride_; ++i) {
        const std::int32_t number = r * tracks_per_rank_ + static_cast<std::int32_t>(l * stride_ + i);
        Track& track = tracks_[at(number)];
        track.cursor = Cursor(plan.lanes[l]);
        track.rank = r;
        track.channel = plan.lanes[l].channel * static_cast<std::int32_t>(stride_) + static_cast<std::int32_t>(i);
        track.slice = i;
        if (!track.cursor.done()) wake(number, 0);
      }
  }
}

Status Run::run() {
  while (!events_.empty()) {
    const EventQueue::Event event = events_.pop();
    if (++done_events_ > options_.max_events)
      return fail(Code::invalid_usage, "{} in a world of {}: more than {} events (reached {:.6g} s)", plans_[0].algorithm, world_,
                  options_.max_events, event.at_s);
    switch (event.kind) {
      case EventKind::arrival: arrive(event.subject, event.at_s); break;
      case EventKind::credit: give_credit(event.subject, event.at_s); break;
      case EventKind::at_sender:
      case EventKind::at_receiver: {
        Message& message = messages_[at(event.subject)];
        const Fabric::Passage passage = fabric_.pass(message.flight, event.at_s);
        const Fabric::Flight& f = message.flight;
        const std::int32_t from_below = (f.from - f.to % world_ + world_) % world_;  // sender, as seen by the receiver
        if (!passage.on_its_way)
          events_.push(passage.at_s, EventKind::arrival, from_below, event.subject);
        else if (fabric_.at_sender(f))
          events_.push(passage.at_s, EventKind::at_sender, f.from, event.subject);
        else
          events_.push(passage.at_s, EventKind::at_receiver, from_below, event.subject);
        break;
      }
      case EventKind::processor:
        processors_[at(event.subject)].queued = false;
        while (turn(event.subject, event.at_s)) {
        }
        break;
    }
  }
  for (const Track& track : tracks_)
    if (!track.cursor.done()) return standstill();
  return {};
}

// One step of the track whose turn it is; false if the rank has nothing to do now, or is busy.
bool Run::turn(std::int32_t rank, double now_s) {
  Processor& processor = processors_[at(rank)];
  if (processor.running >= 0) {
    Track& track = tracks_[at(processor.running)];
    processor.running = -1;
    finish(track, now_s);
  }
  if (processor.ready == 0) return false;
  Cause& core = cores_[at(fabric_.places()[at(rank)].core)];
  if (core.at_s > now_s) {  // another rank's
    queue(rank, core.at_s);
    return false;
  }
  const std::uint64_t after = processor.ready & (~std::uint64_t{0} << processor.turn);
  processor.turn = std::countr_zero(after != 0 ? after : processor.ready);
  const std::int32_t number = rank * tracks_per_rank_ + processor.turn;
  Track& track = tracks_[at(number)];
  if (track.cursor.done() || !start(track, number, now_s)) {
    processor.ready &= ~(std::uint64_t{1} << processor.turn);
    return true;
  }
  if (core.at_s > now_s) {
    processor.running = number;
    queue(rank, core.at_s);
    return false;
  }
  finish(track, now_s);
  return true;
}

// False if it has to wait. Afterwards the core is taken until the step's end.
bool Run::start(Track& track, std::int32_t number, double now_s) {
  const Step& step = track.cursor.step();
  const std::int32_t i = track.cursor.iteration();
  track.bytes = length(track, step);
  track.in = track.out = -1;
  if (track.bytes == 0 && carries_data(step.op)) return true;  // left out on both sides
  if (receives(step.op)) {
    const std::int32_t from = step.from.at(i);
    const std::int32_t in = link(from % period_, (track.rank - from + world_) % world_, track.channel);
    if (links_[at(in)].first < 0) {
      links_[at(in)].receiver = number;
      return false;
    }
    track.in = in;
  }
  if (sends(step.op)) {
    const std::int32_t out = link(track.rank, (step.to.at(i) - track.rank + world_) % world_, track.channel);
    if (links_[at(out)].credits == 0) {
      links_[at(out)].sender = number;
      return false;
    }
    --links_[at(out)].credits;
    track.out = out;
  }
  note(track, number, now_s, now_s + cost_s(track, step, now_s));
  return true;
}

// Notes what the step had waited for last: that is the way the critical path takes.
void Run::note(Track& track, std::int32_t number, double now_s, double end_s) {
  Cause& core = cores_[at(fabric_.places()[at(track.rank)].core)];
  Cause cause = core;
  PathStep::After after =
      core.at_s == 0 && core.node < 0 && core.depth == 0 ? PathStep::After::start : PathStep::After::processor;
  if (track.out >= 0 && links_[at(track.out)].credit.at_s > cause.at_s) {
    cause = links_[at(track.out)].credit;
    after = PathStep::After::credit;
  }
  if (track.in >= 0) {
    const Message& message = messages_[at(links_[at(track.in)].first)];
    if (message.cause.at_s >= cause.at_s) {
      cause = message.cause;
      cause.depth += message.flight.bytes != 0 ? 1 : 0;
      after = PathStep::After::message;
    }
  }
  core = {end_s, -1, cause.depth};
  if (keeps_path_ && nodes_.size() >= kMaxNodes) keeps_path_ = false;
  if (keeps_path_) {
    core.node = static_cast<std::int32_t>(nodes_.size());
    nodes_.push_back({cause.node, number, static_cast<std::uint32_t>(track.cursor.loop()),
                      static_cast<std::uint32_t>(track.cursor.step_in_loop()), static_cast<std::uint32_t>(track.slice),
                      track.cursor.iteration(), after, now_s, end_s});
  }
  track.ended = core;
  if (end_s > time_s_ || (end_s == time_s_ && core.depth >= rounds_)) {
    time_s_ = end_s;
    rounds_ = core.depth;
    last_node_ = core.node;
  }
}

void Run::finish(Track& track, double now_s) {
  if (track.in >= 0) {
    Link& in = links_[at(track.in)];
    Message& message = messages_[at(in.first)];
    processors_[at(track.rank)].received += message.flight.bytes;
    const std::int32_t number = in.first;
    in.first = message.next;
    message.cause = track.ended;
    if (in.credit_s == 0)
      give_credit(number, now_s);
    else
      events_.push(now_s + in.credit_s, EventKind::credit, in.from, number);
  }
  if (track.out >= 0) launch(track, now_s);
  next_step(track);
}

void Run::next_step(Track& track) {
  track.cursor.advance();
  if (!track.cursor.done() || track.slice + stride_ >= slices_.slices) return;
  track.slice += stride_;
  track.cursor.restart();
}

double Run::cost_s(const Track& track, const Step& step, double now_s) {
  const double bytes = static_cast<double>(track.bytes);
  const double overhead_s = sends(step.op) ? cluster_.overhead_s : 0;
  switch (step.op) {
    case Op::copy:
    case Op::send:
    case Op::recv:
    case Op::recv_copy_send: return overhead_s + bytes / cluster_.copy_Bps;
    case Op::reduce:
    case Op::recv_reduce:
    case Op::recv_reduce_send: return overhead_s + bytes / cluster_.reduce_Bps;
    case Op::signal:
    case Op::wait: return overhead_s;
    case Op::copy_shared:
    case Op::reduce_shared: return shared_s(track, step, now_s);
  }
  return 0;
}

// The processor reads other ranks' memory and waits for the bytes.
double Run::shared_s(const Track& track, const Step& step, double now_s) {
  const bool all = step.op == Op::reduce_shared;
  const std::int32_t one = all ? -1 : step.from.at(track.cursor.iteration());
  double there_s = now_s;
  for (std::int32_t q = all ? 0 : one; q < (all ? world_ : one + 1); ++q) {
    if (q == track.rank) continue;
    const std::int32_t from = q % period_;
    there_s = std::max(there_s, fabric_.read(from, (from + track.rank - q + world_) % world_, track.bytes, now_s));
    bytes_[static_cast<std::size_t>(fabric_.class_of(from, (from + track.rank - q + world_) % world_))] += track.bytes;
  }
  const double bytes = static_cast<double>(track.bytes);
  const double work_s = all ? bytes * (world_ - 1) / cluster_.reduce_Bps : bytes / cluster_.copy_Bps;
  return std::max(there_s - now_s, work_s);
}

std::int32_t Run::link(std::int32_t from, std::int32_t delta, std::int32_t channel) {
  bool added = false;
  const std::int32_t number = table_.find_or_add(from, delta, channel, added);
  if (added) {
    const std::int32_t to = (from + delta) % world_;
    links_.push_back({.credits = credits_, .from = from, .to = to, .credit_s = fabric_.credit_s(from, to)});
  }
  return number;
}

void Run::launch(Track& track, double now_s) {
  std::int32_t number = static_cast<std::int32_t>(messages_.size());
  if (free_.empty()) {
    messages_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  const Link& out = links_[at(track.out)];
  Message& message = messages_[at(number)];
  message = {.flight = {.from = out.from, .to = out.to, .bytes = track.bytes}, .link = track.out};
  message.cause = track.ended;
  processors_[at(track.rank)].sent += track.bytes;
  bytes_[static_cast<std::size_t>(fabric_.class_of(out.from, out.to))] += track.bytes;
  ++(carries_data(track.cursor.step().op) ? sent_messages_ : sent_signals_);
  events_.push(now_s, EventKind::at_sender, out.from, number);
}

void Run::arrive(std::int32_t message, double now_s) {
  messages_[at(message)].cause.at_s = now_s;
  Link& in = links_[at(messages_[at(message)].link)];
  if (in.first < 0)
    in.first = message;
  else
    messages_[at(in.last)].next = message;
  in.last = message;
  if (in.receiver < 0) return;
  wake(in.receiver, now_s);
  in.receiver = -1;
}

void Run::give_credit(std::int32_t message, double now_s) {
  Link& out = links_[at(messages_[at(message)].link)];
  ++out.credits;
  out.credit = messages_[at(message)].cause;
  out.credit.at_s = now_s;
  free_.push_back(message);
  if (out.sender < 0) return;
  wake(out.sender, now_s);
  out.sender = -1;
}

void Run::wake(std::int32_t track, double now_s) {
  const std::int32_t rank = track / tracks_per_rank_;
  processors_[at(rank)].ready |= std::uint64_t{1} << (track % tracks_per_rank_);
  queue(rank, now_s);
}

void Run::queue(std::int32_t rank, double at_s) {
  Processor& processor = processors_[at(rank)];
  if (processor.queued) return;
  processor.queued = true;
  events_.push(at_s, EventKind::processor, rank, rank);
}

std::uint64_t Run::length(const Track& track, const Step& step) const {
  if (!carries_data(step.op)) return 0;
  const Lengths& lengths = track.slice + 1 == slices_.slices ? short_ : full_;
  return lengths.of(operand(step), track.cursor.iteration()) * options_.element_bytes;
}

Status Run::standstill() const {
  for (const Track& track : tracks_)
    if (!track.cursor.done())
      return fail(Code::internal_error, "{} in a world of {}: stands still at {:.6g} s, rank {} waits for ever in: {}",
                  plans_[0].algorithm, world_, time_s_, track.rank, describe(track.cursor.step(), track.cursor.iteration()));
  return {};
}

Simulation Run::result() const {
  Simulation s;
  s.time_s = time_s_;
  s.rounds = rounds_;
  const std::uint64_t alike = static_cast<std::uint64_t>(world_ / period_);
  s.messages = sent_messages_ * alike;
  s.signals = sent_signals_ * alike;
  for (std::size_t c = 0; c < kLinkClasses; ++c) {
    s.bytes[c] = bytes_[c] * alike;
    s.total_bytes += s.bytes[c];
  }
  for (const Processor& p : processors_) s.peak_node_bytes = std::max({s.peak_node_bytes, p.sent, p.received});
  s.busiest = fabric_.busiest(options_.top);
  s.slices = slices_.slices;
  s.events = done_events_;
  s.period = period_;
  s.path = path(s.path_length);
  return s;
}

std::vector<PathStep> Run::path(std::uint64_t& length) const {
  std::vector<PathStep> steps;
  if (!keeps_path_) return steps;
  for (std::int32_t n = last_node_; n >= 0; n = nodes_[at(n)].before) {
    if (length++ >= options_.path_steps) continue;
    const Node& node = nodes_[at(n)];
    const std::int32_t rank = node.track / tracks_per_rank_,
                       lane = node.track % tracks_per_rank_ / static_cast<std::int32_t>(stride_);
    const Step& step = plans_[at(rank)].lanes[at(lane)].loops[node.loop].steps[node.step];
    steps.push_back({{rank}, node.slice, node.start_s, node.end_s, node.after, describe(step, node.iteration)});
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

}  // namespace shoal::plan
