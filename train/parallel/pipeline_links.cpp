// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/pipeline_links.h"

#include <utility>

namespace shoal::train {
namespace {

constexpr std::size_t bytes_of(const std::vector<float>& message) { return message.size() * sizeof(float); }

std::size_t other_end(const Communicator& way) { return 1 - way.seat().rank; }

}  // namespace

Outbox::Outbox(Communicator way, Ledger& ledger) : ledger_(ledger), stream_(way.seat()), way_(std::move(way)) {
  way_->count_in(&ledger);
}

void Outbox::send(std::vector<float> message) {
  ledger_.hold(Holds::working, bytes_of(message));
  sent_.push_back({std::move(message), Event(way_->seat())});
  way_->send(std::span(sent_.back().message), other_end(*way_), stream_.handle());
  sent_.back().taken.record(stream_);
}

std::optional<std::vector<float>> Outbox::reclaim() {
  if (sent_.empty() || !sent_.front().taken.has_passed()) return std::nullopt;
  std::vector<float> message = std::move(sent_.front().message);
  sent_.pop_front();
  ledger_.release(Holds::working, bytes_of(message));
  return message;
}

void Outbox::finish() {
  stream_.wait();
  way_->check_async();
  while (reclaim()) {
  }
}

Inbox::Inbox(Communicator way, Ledger& ledger) : ledger_(ledger), stream_(way.seat()), come_(way.seat()), way_(std::move(way)) {}

void Inbox::expect(std::vector<std::size_t> sizes) {
  expected_.assign(sizes.begin(), sizes.end());
  begin();
}

void Inbox::begin() {
  if (expected_.empty()) return;
  coming_.resize(expected_.front());
  expected_.pop_front();
  ledger_.hold(Holds::working, bytes_of(coming_));
  way_->receive(std::span(coming_), other_end(*way_), stream_.handle());
  come_.record(stream_);
}

std::vector<float> Inbox::take() {
  come_.wait();
  way_->check_async();
  std::vector<float> message = std::exchange(coming_, {});
  ledger_.release(Holds::working, bytes_of(message));
  begin();
  return message;
}

PipelineLinks::PipelineLinks(const Communicator& stages, bool wraps, Ledger& ledger) {
  for (const Flow flow : {Flow::activations, Flow::gradients}) connect(stages, wraps, flow, ledger);
}

// Boundary b lies between stage b and the next one, p-1 between the last and the first. A stage has two, which neighbours in the
// ring of boundaries: those that do not are split off in one round, the even and the odd ones, and the last one of an odd ring.
void PipelineLinks::connect(const Communicator& stages, bool wraps, Flow flow, Ledger& ledger) {
  const std::size_t p = stages.seat().world, stage = stages.seat().rank;
  const std::size_t boundaries = p == 1 ? 0 : wraps ? p : p - 1;
  const auto round_of = [&](std::size_t boundary) { return boundary + 1 == p && p % 2 == 1 ? 2 : boundary % 2; };
  const std::size_t after = stage, before = (stage + p - 1) % p;
  for (std::size_t round = 0; round < 3; ++round) {
    bool needed = false;
    for (std::size_t b = 0; b < boundaries; ++b) needed = needed || round_of(b) == round;
    if (!needed) continue;
    const bool first = after < boundaries && round_of(after) == round, second = before < boundaries && round_of(before) == round;
    const std::size_t colour = first ? after : second ? before : p + stage;
    Communicator way = stages.split(static_cast<int>(colour), first ? 0 : 1);
    if (!first && !second)
      way.close();  // alone
    else if (first == (flow == Flow::activations))
      ways(flow).out.emplace(std::move(way), ledger);
    else
      ways(flow).in.emplace(std::move(way), ledger);
  }
}

void PipelineLinks::send(Flow flow, std::vector<float> message) {
  Ways& its = ways(flow);
  its.out ? its.out->send(std::move(message)) : its.here.push_back(std::move(message));
}

void PipelineLinks::expect(Flow flow, std::vector<std::size_t> sizes) {
  if (ways(flow).in) ways(flow).in->expect(std::move(sizes));
}

std::vector<float> PipelineLinks::take(Flow flow) {
  Ways& its = ways(flow);
  if (its.in) return its.in->take();
  std::vector<float> message = std::move(its.here.front());
  its.here.pop_front();
  return message;
}

std::vector<float> PipelineLinks::room(std::size_t size) {
  std::vector<float> memory;
  for (Ways& each : ways_) {
    if (memory.capacity() > 0 || !each.out) continue;
    if (auto taken = each.out->reclaim()) memory = std::move(*taken);
  }
  memory.resize(size);
  return memory;
}

void PipelineLinks::finish() {
  for (Ways& each : ways_)
    if (each.out) each.out->finish();
}

}  // namespace shoal::train
