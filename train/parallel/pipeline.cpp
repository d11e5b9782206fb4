// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

namespace shoal::train {
namespace {

Flow flow_of(ActionKind kind) { return kind == ActionKind::forward ? Flow::activations : Flow::gradients; }

bool begins_backward(ActionKind kind) { return kind == ActionKind::backward || kind == ActionKind::backward_input; }

bool is_last_use(ActionKind kind) { return kind == ActionKind::backward || kind == ActionKind::backward_weight; }

}  // namespace

Pipeline::Pipeline(const GptShape& shape, PipelinePlan plan, const Parts& parts, std::uint64_t seed,
                   std::optional<ActionTimes> stand_in)
    : shape_(shape),
      plan_(std::move(plan)),
      parts_(parts),
      stand_in_(stand_in),
      links_(parts.stages, plan_.shape().chunks > 1, parts.ledger),
      spare_(plan_.shape().chunks),
      bytes_(plan_.shape().chunks) {
  for (std::size_t chunk = 0; chunk < plan_.shape().chunks; ++chunk)
    chunks_.emplace_back(shape, plan_.units(stage(), chunk), parts.group, parts.attention, seed);
  const std::size_t last = plan_.shape().stages - 1;
  if (!shape.tied || last == 0) return;
  const bool is_end = stage() == 0 || stage() == last;
  Communicator ends = parts.stages.split(is_end ? 0 : static_cast<int>(stage()), static_cast<int>(stage()));
  if (!is_end) {
    ends.close();
    return;
  }
  ends.count_in(&parts.ledger);
  tied_.emplace(std::move(ends));
}

// Activations and their gradients, mine of a tensor group's.
std::size_t Pipeline::message_size(const TokenBatch& batch) const { return parts_.group.my_rows(batch.rows()) * shape_.width; }

void Pipeline::expect_messages(std::span<const TokenBatch> micro_batches) {
  std::array<std::vector<std::size_t>, 2> sizes;
  for (const Action& action : plan_.schedule.actions[stage()])
    if (source_of(plan_.shape(), stage(), action))
      sizes[static_cast<std::size_t>(flow_of(action.kind))].push_back(message_size(micro_batches[action.micro_batch]));
  for (const Flow flow : {Flow::activations, Flow::gradients})
    links_.expect(flow, std::move(sizes[static_cast<std::size_t>(flow)]));
}

double Pipeline::train(std::span<const TokenBatch> micro_batches) {
  loss_ = 0;
  times_.clear();
  try {
    expect_messages(micro_batches);
    for (const Action& action : plan_.schedule.actions[stage()]) run(action, micro_batches[action.micro_batch]);
    links_.finish();
    return from_last_stage(loss_);
  } catch (const Error& error) {  // its text has the ranks of two neighbours' communicator
    throw failure(error.code(), "stage {} of {}: {}", stage(), plan_.shape().stages, error.what());
  }
}

void Pipeline::run(const Action& action, const TokenBatch& batch) {
  const Flow flow = flow_of(action.kind);
  std::vector<float> in;
  if (source_of(plan_.shape(), stage(), action)) in = links_.take(flow);
  Slot& slot = in_flight_[{action.micro_batch, action.chunk}];
  most_in_flight_ = std::max(most_in_flight_, in_flight_.size());
  if (action.kind == ActionKind::forward || (begins_backward(action.kind) && plan_.recompute))
    make_room(slot, action.chunk, batch);

  times_.push_back(clock_.ms() / 1000);
  std::vector<float> out = compute(action, batch, slot, std::move(in));
  times_.push_back(clock_.ms() / 1000);
  if (destination_of(plan_.shape(), stage(), action)) links_.send(flow, std::move(out));
  if (action.kind == ActionKind::forward && plan_.recompute) keep_input_only(slot, action.chunk, batch);
  if (!is_last_use(action.kind)) return;
  give_up_room(slot, action.chunk);
  in_flight_.erase({action.micro_batch, action.chunk});
}

// For all that a forward leaves; the first unit's input, if it has one, is there already or arrives.
void Pipeline::make_room(Slot& slot, std::size_t chunk, const TokenBatch& batch) {
  const UnitRange units = chunks_[chunk].range();
  if (auto& spare = spare_[chunk]; !spare.empty()) {
    if (!slot.inputs.empty()) std::swap(slot.inputs[0], spare.back().inputs[0]);
    std::swap(slot.inputs, spare.back().inputs);
    std::swap(slot.stashes, spare.back().stashes);
    spare.pop_back();
  }
  slot.inputs.resize(units.count());
  slot.stashes.resize(units.count());
  std::size_t kept = 0, whole = 0;
  for (std::size_t i = 0; i < units.count(); ++i) {
    const Unit& unit = chunks_[chunk].unit(units.first + i);
    const std::size_t input = units.first + i == 0 ? 0 : message_size(batch), stash = unit.stash_size(batch);
    kept += input + unit.kept_size(batch);
    whole += input + stash;
    if (stand_in_) continue;
    if (i > 0) slot.inputs[i].resize(input);
    slot.stashes[i].resize(stash);
  }
  parts_.ledger.hold(Holds::activations, kept * sizeof(float) - slot.bytes);
  slot.bytes = bytes_[chunk] = kept * sizeof(float);
  slot.working = (whole - kept) * sizeof(float);
  parts_.ledger.hold(Holds::working, slot.working);
}

void Pipeline::give_up_room(Slot& slot, std::size_t chunk) {
  parts_.ledger.release(Holds::activations, std::exchange(slot.bytes, 0));
  parts_.ledger.release(Holds::working, std::exchange(slot.working, 0));
  if (!slot.stashes.empty()) spare_[chunk].push_back(std::move(slot));
}

void Pipeline::keep_input_only(Slot& slot, std::size_t chunk, const TokenBatch& batch) {
  Slot kept;
  kept.inputs.resize(slot.inputs.size());
  std::swap(kept.inputs[0], slot.inputs[0]);
  const bool is_first = chunks_[chunk].range().first == 0;
  kept.bytes = is_first ? 0 : message_size(batch) * sizeof(float);
  slot.bytes -= kept.bytes;
  give_up_room(slot, chunk);
  slot = std::move(kept);
}

std::vector<float> Pipeline::compute(const Action& action, const TokenBatch& batch, Slot& slot, std::vector<float> in) {
  if (stand_in_) {
    std::this_thread::sleep_for(std::chrono::duration<double>(duration_of(plan_.shape(), *stand_in_, action.kind)));
    return links_.room(message_size(batch));
  }
  Gpt& chunk = chunks_[action.chunk];
  if (action.kind == ActionKind::forward) {
    slot.inputs[0] = std::move(in);
    std::vector<float> out = forward(chunk, batch, slot);
    if (chunk.has_head()) loss_ += chunk.loss();
    return out;
  }
  if (begins_backward(action.kind)) {
    if (plan_.recompute) forward(chunk, batch, slot);
    return backward(chunk, batch, slot, std::move(in), action.kind == ActionKind::backward);
  }
  for (std::size_t u = chunk.range().last; u-- > chunk.range().first;)
    chunk.unit(u).backward_parameters(batch, slot.stashes[u - chunk.range().first]);
  return {};
}

std::vector<float> Pipeline::forward(Gpt& chunk, const TokenBatch& batch, Slot& slot) {
  const std::size_t count = chunk.range().count();
  std::vector<float> out;
  if (!chunk.has_head()) out = links_.room(message_size(batch));
  for (std::size_t i = 0; i < count; ++i)
    chunk.unit(chunk.range().first + i).forward(batch, slot.inputs[i], i + 1 < count ? slot.inputs[i + 1] : out, slot.stashes[i]);
  return out;
}

std::vector<float> Pipeline::backward(Gpt& chunk, const TokenBatch& batch, Slot& slot, std::vector<float> flowing, bool whole) {
  std::vector<float> next;
  for (std::size_t i = chunk.range().count(); i-- > 0;) {
    Unit& unit = chunk.unit(chunk.range().first + i);
    if (chunk.range().first + i == 0)
      next.clear();
    else if (next.empty())
      next = links_.room(message_size(batch));
    unit.backward_input(batch, slot.inputs[i], flowing, next, slot.stashes[i]);
    if (whole) unit.backward_parameters(batch, slot.stashes[i]);
    std::swap(flowing, next);
  }
  return flowing;
}

double Pipeline::evaluate(const TokenBatch& batch) {
  loss_ = 0;
  const std::size_t without_input = stage() == 0 ? 1 : 0;  // the model's first slice
  links_.expect(Flow::activations, std::vector<std::size_t>(chunks_.size() - without_input, message_size(batch)));
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    run({ActionKind::forward, 0, chunk}, batch);
    give_up_room(in_flight_[{0, chunk}], chunk);
    in_flight_.clear();
  }
  links_.finish();
  return from_last_stage(loss_);
}

double Pipeline::from_last_stage(double loss) const {
  const std::size_t last = plan_.shape().stages - 1;
  std::array<double, 1> value{loss};
  parts_.stages.broadcast(std::span<double>(value), last);
  if (stage() == last) parts_.ledger.sent(Moves::broadcast, sizeof(value), plan_.shape().stages);
  return value.front();
}

void Pipeline::sum_tied() {
  if (!shape_.tied || plan_.slices.size() == 1) return;  // one slice has one table
  const std::size_t table = shape_.vocabulary / parts_.group.world() * shape_.width;
  const auto first = chunks_.front().gradients().first(std::min(table, chunks_.front().gradients().size()));
  const auto last = chunks_.back().gradients().last(std::min(table, chunks_.back().gradients().size()));
  if (tied_) {
    (*tied_)->all_reduce(stage() == 0 ? first : last);
  } else if (plan_.shape().stages == 1) {
    for (std::size_t i = 0; i < table; ++i) first[i] = last[i] = first[i] + last[i];
  }
}

void Pipeline::start_clock() {
  std::array<float, 1> here{};
  parts_.stages.all_reduce(std::span<float>(here));
  clock_ = {};
}

Timeline Pipeline::timeline() const {
  const std::size_t stages = plan_.shape().stages;
  std::vector<double> all(times_.size() * stages);
  parts_.stages.all_gather<double>(times_, std::span(all));
  Timeline timeline{.stages = stages, .bars = {}};
  for (std::size_t s = 0, at = 0; s < stages; ++s)
    for (const Action& action : plan_.schedule.actions[s]) {
      timeline.bars.push_back({.stage = s, .action = action, .begin = all[at], .end = all[at + 1]});
      at += 2;
    }
  return timeline;
}

}  // namespace shoal::train
