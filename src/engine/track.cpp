// SPDX-License-Identifier: Apache-2.0
#include "engine/track.h"

#include <cstring>

namespace shoal::engine {

using link::Direct;
using link::Link;
using link::Message;
using plan::Buffer;
using plan::Chunk;
using plan::Op;
using plan::Step;

namespace {

// Below this a copy into wire memory costs less than a system call that names the user's.
constexpr std::size_t kDirectMinimum = 8 << 10;

}  // namespace

void Track::start(const Job& job, const plan::Lane& lane, int channel, std::size_t first, std::size_t stride) {
  job_ = &job;
  lane_ = &lane;
  channel_ = channel;
  slice_ = first;
  stride_ = stride;
  loop_ = step_ = 0;
  iteration_ = 0;
  expected_ = asked_ = false;
  failure_ = {};
  done_ = slice_ >= job.slicing.slices || lane.loops.empty();
}

bool Track::advance() {
  bool moved = false;
  while (!done_) {
    if (!execute(lane_->loops[loop_].steps[step_])) break;
    next_step();
    moved = true;
  }
  return moved;
}

void Track::next_step() {
  expected_ = false;
  const plan::Loop& loop = lane_->loops[loop_];
  if (++step_ < loop.steps.size()) return;
  step_ = 0;
  if (++iteration_ < loop.iterations) return;
  iteration_ = 0;
  if (++loop_ == lane_->loops.size()) next_slice();
}

void Track::next_slice() {
  loop_ = 0;
  slice_ += stride_;
  done_ = slice_ >= job_->slicing.slices;
}

bool Track::execute(const Step& step) {
  switch (step.op) {
    case Op::copy: return do_copy(step);
    case Op::send: return do_send(step);
    case Op::recv: return do_recv(step);
    case Op::recv_reduce: return do_recv_reduce(step);
    case Op::recv_reduce_send: return do_recv_reduce_send(step);
    case Op::recv_copy_send: return do_recv_copy_send(step);
  }
  return false;
}

bool Track::do_copy(const Step& step) {
  const Part n = part(step.source);
  const std::byte* source = read_from(step.source, n);
  std::byte* target = write_to(part(step.target));
  const device::MapFn map = step.final ? job_->kernels->load_input_final : job_->kernels->load_input;
  if (step.source.buffer == Buffer::input) {
    if (source != target || job_->scales_input || step.final)
      map({target, nullptr, job_->stream_stores}, source, n.elements, job_->call.scale);
  } else {
    device::copy({target, nullptr, job_->stream_stores}, {source, n.size.value});
  }
  return true;
}

bool Track::do_send(const Step& step) {
  const Part n = part(step.source);
  if (n.elements == 0) return true;
  Link* out = outgoing(step);
  if (out == nullptr || !room_behind_direct(*out)) return false;
  const std::byte* source = read_from(step.source, n);
  const bool scaled = job_->scales_input && step.source.buffer == Buffer::input;
  if (Direct* direct = scaled ? nullptr : direct_way(*out, n.size)) return direct->send({source, n.size.value}, job_->tag);
  const std::span<std::byte> wire = out->acquire(n.size);
  if (wire.data() == nullptr) return false;
  if (scaled)
    job_->kernels->load_input({wire.data()}, source, n.elements, job_->call.scale);
  else
    std::memcpy(wire.data(), source, n.size.value);
  out->commit(job_->tag);
  return true;
}

bool Track::do_recv(const Step& step) {
  const Part n = part(step.target);
  if (n.elements == 0) return true;
  Link* in = incoming(step);
  if (in == nullptr) return false;
  std::byte* target = write_to(n);
  if (!expected_) {
    if (Direct* direct = in->direct()) direct->expect({target, n.size.value});
    expected_ = true;
  }
  const Message* message = arrived(*in, {step.from.at(iteration_)}, n.size);
  if (message == nullptr) return false;
  if (message->payload.data() != target) device::copy({target, nullptr, job_->stream_stores}, message->payload);
  in->release();
  return true;
}

bool Track::do_recv_reduce(const Step& step) {
  const Part n = part(step.source);
  if (n.elements == 0) return true;
  Link* in = incoming(step);
  if (in == nullptr) return false;
  const Message* message = arrived(*in, {step.from.at(iteration_)}, n.size);
  if (message == nullptr) return false;
  combine(step)({write_to(n), nullptr, job_->stream_stores}, read_from(step.source, n), message->payload.data(), n.elements,
                job_->call.scale);
  in->release();
  return true;
}

bool Track::do_recv_reduce_send(const Step& step) {
  const Part n = part(step.source);
  if (n.elements == 0) return true;
  Link* in = incoming(step);
  Link* out = in != nullptr ? outgoing(step) : nullptr;
  if (out == nullptr) return false;
  const Message* message = arrived(*in, {step.from.at(iteration_)}, n.size);
  if (message == nullptr) return false;
  waiting_for_ = {step.to.at(iteration_)};
  waiting_to_receive_ = false;
  if (!room_behind_direct(*out)) return false;
  const std::byte* source = read_from(step.source, n);
  const bool kept = step.target.buffer != Buffer::none;
  std::byte* target = kept ? write_to(n) : nullptr;
  if (Direct* direct = kept ? direct_way(*out, n.size) : nullptr) {
    combine(step)({target, nullptr, false}, source, message->payload.data(), n.elements, job_->call.scale);
    direct->send({target, n.size.value}, job_->tag);  // there is room: the last one is sent
  } else {
    const std::span<std::byte> wire = out->acquire(n.size);
    if (wire.data() == nullptr) return false;
    const device::Target where = kept ? device::Target{target, wire.data(), job_->stream_stores} : device::Target{wire.data()};
    combine(step)(where, source, message->payload.data(), n.elements, job_->call.scale);
    out->commit(job_->tag);
  }
  in->release();
  return true;
}

bool Track::do_recv_copy_send(const Step& step) {
  const Part n = part(step.target);
  if (n.elements == 0) return true;
  Link* in = incoming(step);
  Link* out = in != nullptr ? outgoing(step) : nullptr;
  if (out == nullptr) return false;
  std::byte* target = write_to(n);
  if (!expected_) {
    if (Direct* direct = in->direct()) direct->expect({target, n.size.value});
    expected_ = true;
  }
  const Message* message = arrived(*in, {step.from.at(iteration_)}, n.size);
  if (message == nullptr) return false;
  waiting_for_ = {step.to.at(iteration_)};
  waiting_to_receive_ = false;
  if (!room_behind_direct(*out)) return false;
  const bool landed = message->payload.data() == target;
  if (Direct* direct = direct_way(*out, n.size)) {
    if (!landed) device::copy({target}, message->payload);
    direct->send({target, n.size.value}, job_->tag);
  } else {
    const std::span<std::byte> wire = out->acquire(n.size);
    if (wire.data() == nullptr) return false;
    if (landed)
      std::memcpy(wire.data(), target, n.size.value);
    else
      device::copy({target, wire.data(), job_->stream_stores}, message->payload);
    out->commit(job_->tag);
  }
  in->release();
  return true;
}

Link* Track::link_to(Rank peer) {
  Link* link = links_.get(peer, channel_);
  if (link == nullptr && !asked_) ask_for_all_links();
  return link;
}

// A link may need both ends to ask for it. In a ring everyone's first step is about the next rank: whoever asked only for the
// link that it waits for would wait for a rank that asks for another one.
void Track::ask_for_all_links() {
  asked_ = true;
  plan::for_each_step(*lane_, [this](const Step& step, std::int32_t i) {
    if (plan::receives(step.op)) links_.get({step.from.at(i)}, channel_);
    if (plan::sends(step.op)) links_.get({step.to.at(i)}, channel_);
  });
}

Link* Track::incoming(const Step& step) {
  waiting_for_ = {step.from.at(iteration_)};
  waiting_to_receive_ = true;
  return link_to(waiting_for_);
}

Link* Track::outgoing(const Step& step) {
  const Rank to{step.to.at(iteration_)};
  Link* out = link_to(to);
  if (out == nullptr || !plan::receives(step.op)) {
    waiting_for_ = to;
    waiting_to_receive_ = false;
  }
  return out;
}

const Message* Track::arrived(Link& in, Rank from, Bytes expected) {
  const Message* message = in.front();
  if (message == nullptr) return nullptr;
  if (message->tag == job_->tag && message->payload.size() == expected.value) [[likely]]
    return message;
  failure_ = Status(
      Code::invalid_usage,
      fmt::format("{}: rank {} makes another call (its message has {} bytes, {} expected, and another signature): all ranks must "
                  "make the same calls, with the same count, type and reduction, in the same order",
                  describe(job_->call), from.value, message->payload.size(), expected.value),
      from);
  return nullptr;
}

Direct* Track::direct_way(Link& out, Bytes size) const {
  return job_->plan->by_reference && size.value >= kDirectMinimum ? out.direct() : nullptr;
}

// The plan's proof rests on this: whatever is sent on a link waits until the send before it has left user memory.
bool Track::room_behind_direct(Link& out) const {
  if (!job_->plan->by_reference) return true;
  Direct* direct = out.direct();
  return direct == nullptr || direct->sent();
}

Track::Part Track::part(const Chunk& chunk) const {
  const plan::Range range = job_->slicing.range(slice_, job_->plan->chunks, chunk.index.at(iteration_));
  const std::size_t width = element_bytes(job_->call.type);
  return {range.begin, range.length(), {range.begin * width}, {range.length() * width}};
}

const std::byte* Track::read_from(const Chunk& chunk, const Part& part) const {
  const void* base = chunk.buffer == Buffer::input ? job_->call.input : job_->call.output;
  return static_cast<const std::byte*>(base) + part.offset.value;
}

std::byte* Track::write_to(const Part& part) const { return static_cast<std::byte*>(job_->call.output) + part.offset.value; }

device::CombineFn Track::combine(const Step& step) const {
  const device::ReduceKernels& k = *job_->kernels;
  if (step.source.buffer == Buffer::input) return step.final ? k.combine_input_final : k.combine_input;
  return step.final ? k.combine_final : k.combine;
}

}  // namespace shoal::engine
