// SPDX-License-Identifier: Apache-2.0
#include "engine/track.h"

#include <algorithm>
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

void Track::start(const Job& job, const plan::Lane& lane, int channel, std::size_t first, std::size_t stride,
                  std::byte* scratch) {
  job_ = &job;
  lane_ = &lane;
  waiting_.channel = channel;
  scratch_ = scratch;
  slice_ = first;
  stride_ = stride;
  loop_ = step_ = 0;
  iteration_ = 0;
  expected_ = asked_ = walked_ = false;
  failure_ = {};
  traffic_ = {};
  done_ = slice_ >= job.slices || lane.loops.empty();
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
  expected_ = walked_ = false;
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
  done_ = slice_ >= job_->slices;
}

bool Track::execute(const Step& step) {
  if (job_->call.codec != nullptr) [[unlikely]]
    return execute_coded(step);
  switch (step.op) {
    case Op::copy: return do_copy(step);
    case Op::reduce: return do_reduce(step);
    case Op::send: return do_send(step);
    case Op::recv: return do_recv(step);
    case Op::recv_reduce: return do_recv_reduce(step);
    case Op::recv_reduce_send: return do_recv_reduce_send(step);
    case Op::recv_copy_send: return do_recv_copy_send(step);
    case Op::signal: return do_signal(step);
    case Op::wait: return do_wait(step);
    case Op::copy_shared:
    case Op::reduce_shared: break;  // of plans that run over boards
  }
  return false;
}

bool Track::do_copy(const Step& step) {
  const Walk& way = walk(step);
  for (std::int32_t t = 0; t < way.pieces; ++t) {
    const Part source = part(step.source, way, t);
    std::byte* const target = part(step.target, way, t).at;
    const bool changes = step.source.buffer == Buffer::input && (job_->scales_input || step.final);
    if (target != source.at || changes) load(step, {target, nullptr, job_->stream_stores}, source);
  }
  return true;
}

bool Track::do_reduce(const Step& step) {
  const Walk& way = walk(step);
  for (std::int32_t t = 0; t < way.pieces; ++t) {
    const Part source = part(step.source, way, t);
    std::byte* const target = part(step.target, way, t).at;
    combine(step, {target, nullptr, job_->stream_stores}, source.at, target, source.elements);
  }
  return true;
}

bool Track::do_send(const Step& step) {
  const Walk& way = walk(step);
  if (way.total.value == 0) return true;
  Link* out = outgoing(step);
  if (out == nullptr || !room_behind_direct(*out)) return false;
  const bool scaled = job_->scales_input && step.source.buffer == Buffer::input;
  if (Direct* direct = scaled || way.pieces > 1 ? nullptr : direct_way(*out, way.total))
    return direct->send({part(step.source, way, 0).at, way.total.value}, job_->tag) && sent(way.total);
  const std::span<std::byte> wire = out->acquire(way.total);
  if (wire.data() == nullptr) return false;
  std::byte* to = wire.data();
  for (std::int32_t t = 0; t < way.pieces; ++t) {
    const Part source = part(step.source, way, t);
    if (scaled)
      load(step, {to}, source);
    else
      device::copy({to}, {source.at, size_of(source).value});
    to += size_of(source).value;
  }
  out->commit(job_->tag);
  return sent(way.total);
}

bool Track::do_recv(const Step& step) {
  const Walk& way = walk(step);
  if (way.total.value == 0) return true;
  Link* in = incoming(step);
  if (in == nullptr) return false;
  if (!expected_ && way.pieces == 1) {
    if (Direct* direct = in->direct()) direct->expect({part(step.target, way, 0).at, way.total.value});
    expected_ = true;
  }
  const Message* message = arrived(*in, {step.from.at(iteration_)}, way.total);
  if (message == nullptr) return false;
  const std::byte* from = message->payload.data();
  for (std::int32_t t = 0; t < way.pieces; ++t) {
    const Part target = part(step.target, way, t);
    const Bytes n = size_of(target);
    if (from != target.at) device::copy({target.at, nullptr, job_->stream_stores}, {from, n.value});
    from += n.value;
  }
  in->release();
  return received(way.total);
}

bool Track::do_recv_reduce(const Step& step) {
  const Walk& way = walk(step);
  if (way.total.value == 0) return true;
  Link* in = incoming(step);
  if (in == nullptr) return false;
  const Message* message = arrived(*in, {step.from.at(iteration_)}, way.total);
  if (message == nullptr) return false;
  const std::byte* from = message->payload.data();
  for (std::int32_t t = 0; t < way.pieces; ++t) {
    const Part source = part(step.source, way, t);
    combine(step, {part(step.target, way, t).at, nullptr, job_->stream_stores}, source.at, from, source.elements);
    from += size_of(source).value;
  }
  in->release();
  return received(way.total);
}

// Both links, and the message: all or nothing, for a fused step needs the message and room for it at once.
Track::Ends Track::both_ends(const Step& step, Bytes size) {
  Ends ends{.in = incoming(step)};
  if (ends.in != nullptr) ends.out = outgoing(step);
  if (ends.out == nullptr) return ends;
  const Message* message = arrived(*ends.in, {step.from.at(iteration_)}, size);
  if (message == nullptr) return ends;
  waiting_.peer = {step.to.at(iteration_)};
  waiting_.to_receive = false;
  if (room_behind_direct(*ends.out)) ends.message = message;
  return ends;
}

bool Track::do_recv_reduce_send(const Step& step) {
  const Walk& way = walk(step);
  if (way.total.value == 0) return true;
  const auto [in, out, message] = both_ends(step, way.total);
  if (message == nullptr) return false;
  const bool kept = step.target.buffer != Buffer::none;
  if (Direct* direct = kept && way.pieces == 1 ? direct_way(*out, way.total) : nullptr) {
    const Part source = part(step.source, way, 0);
    std::byte* const target = part(step.target, way, 0).at;
    combine(step, {target, nullptr, false}, source.at, message->payload.data(), source.elements);
    direct->send({target, way.total.value}, job_->tag);  // there is room: the last one is sent
  } else {
    const std::span<std::byte> wire = out->acquire(way.total);
    if (wire.data() == nullptr) return false;
    std::size_t offset = 0;
    for (std::int32_t t = 0; t < way.pieces; ++t) {
      const Part source = part(step.source, way, t);
      std::byte* const to = wire.data() + offset;
      const device::Target where =
          kept ? device::Target{part(step.target, way, t).at, to, job_->stream_stores} : device::Target{to};
      combine(step, where, source.at, message->payload.data() + offset, source.elements);
      offset += size_of(source).value;
    }
    out->commit(job_->tag);
  }
  in->release();
  return sent(way.total) && received(way.total);
}

bool Track::do_recv_copy_send(const Step& step) {
  const Walk& way = walk(step);
  if (way.total.value == 0) return true;
  if (!expected_ && way.pieces == 1)
    if (Link* in = incoming(step)) {
      if (Direct* direct = in->direct()) direct->expect({part(step.target, way, 0).at, way.total.value});
      expected_ = true;
    }
  const auto [in, out, message] = both_ends(step, way.total);
  if (message == nullptr) return false;
  if (Direct* direct = way.pieces == 1 ? direct_way(*out, way.total) : nullptr) {
    std::byte* const target = part(step.target, way, 0).at;
    if (message->payload.data() != target) device::copy({target, nullptr, false}, message->payload);
    direct->send({target, way.total.value}, job_->tag);  // there is room: the last one is sent
  } else {
    const std::span<std::byte> wire = out->acquire(way.total);
    if (wire.data() == nullptr) return false;
    std::size_t offset = 0;
    for (std::int32_t t = 0; t < way.pieces; ++t) {
      const Part target = part(step.target, way, t);
      const std::span<const std::byte> from = message->payload.subspan(offset, size_of(target).value);
      if (from.data() == target.at)  // it has landed there
        device::copy({wire.data() + offset}, from);
      else
        device::copy({target.at, wire.data() + offset, job_->stream_stores}, from);
      offset += from.size();
    }
    out->commit(job_->tag);
  }
  in->release();
  return sent(way.total) && received(way.total);
}

bool Track::do_signal(const Step& step) {
  Link* out = outgoing(step);
  if (out == nullptr || !room_behind_direct(*out) || out->acquire({0}).data() == nullptr) return false;
  out->commit(job_->tag);
  return true;
}

bool Track::do_wait(const Step& step) {
  Link* in = incoming(step);
  if (in == nullptr || arrived(*in, {step.from.at(iteration_)}, {0}) == nullptr) return false;
  in->release();
  return true;
}

Link* Track::link_to(Rank peer) {
  Link* link = links_.get(peer, waiting_.channel);
  if (link == nullptr && !asked_) ask_for_all_links();
  return link;
}

// A link may need both ends to ask for it. In a ring everyone's first step is about the next rank: whoever asked only for the
// link that it waits for would wait for a rank that asks for another one.
void Track::ask_for_all_links() {
  asked_ = true;
  plan::for_each_step(*lane_, [this](const Step& step, std::int32_t i) {
    if (plan::receives(step.op)) links_.get({step.from.at(i)}, waiting_.channel);
    if (plan::sends(step.op)) links_.get({step.to.at(i)}, waiting_.channel);
  });
}

Link* Track::incoming(const Step& step) {
  waiting_.peer = {step.from.at(iteration_)};
  waiting_.to_receive = true;
  return link_to(waiting_.peer);
}

Link* Track::outgoing(const Step& step) {
  const Rank to{step.to.at(iteration_)};
  Link* out = link_to(to);
  if (out == nullptr || !plan::receives(step.op)) {
    waiting_.peer = to;
    waiting_.to_receive = false;
  }
  return out;
}

const Message* Track::arrived(Link& in, Rank from, Bytes expected) {
  const Message* message = in.front();
  if (message == nullptr) return nullptr;
  if (message->tag == job_->tag && message->payload.size() == expected.value) [[likely]]
    return message;
  failure_ = another_call(job_->call, from,
                          fmt::format("its message has {} bytes, {} expected, and {} signature", message->payload.size(),
                                      expected.value, message->tag == job_->tag ? "the same" : "another"));
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

Track::Walk Track::find_walk(const Step& step) const {
  const Chunk& chunk = step.target.buffer != Buffer::none ? step.target : step.source;
  if (chunk.size == 1) return {1, false, wire_size_of(part_of(chunk.buffer, chunk.at(0, iteration_)))};
  const auto in_one = [this](const Chunk& each) {
    return each.buffer == Buffer::none || (each.run == each.size && each.wrap == 0 && job_->layout.contiguous(each.buffer));
  };
  Walk way{chunk.size, job_->call.codec == nullptr && in_one(step.source) && in_one(step.target), {}};
  if (way.merged) {
    way.pieces = 1;
    way.total = size_of(part(chunk, way, 0));
  } else {
    for (std::int32_t t = 0; t < chunk.size; ++t)
      way.total.value += wire_size_of(part_of(chunk.buffer, chunk.at(t, iteration_))).value;
  }
  return way;
}

Part Track::part(const Chunk& chunk, const Walk& walk, std::int32_t piece) const {
  Part first = part_of(chunk.buffer, chunk.at(piece, iteration_));
  if (walk.merged) {
    const Part last = part_of(chunk.buffer, chunk.at(chunk.size - 1, iteration_));
    first.elements = static_cast<std::size_t>(last.at - first.at) / job_->layout.width() + last.elements;
  }
  return first;
}

Part Track::part_of(Buffer buffer, std::int32_t index) const {
  switch (buffer) {
    case Buffer::input: return job_->layout.input(index, slice_);
    case Buffer::output: return job_->layout.output(index, slice_);
    case Buffer::scratch: return job_->layout.slot(scratch_, index, slice_);
    case Buffer::shared:
    case Buffer::none: break;
  }
  return {};
}

void Track::combine(const Step& step, device::Target target, const std::byte* source, const std::byte* other,
                    std::size_t n) const {
  const device::ReduceKernels& k = *job_->kernels;
  const device::CombineFn f = step.source.buffer == Buffer::input ? step.final ? k.combine_input_final : k.combine_input
                              : step.final                        ? k.combine_final
                                                                  : k.combine;
  f(target, source, other, n, job_->call.scale);
}

void Track::load(const Step& step, device::Target target, const Part& source) const {
  const bool scaled = step.source.buffer == Buffer::input && (job_->scales_input || step.final);
  if (!scaled) return device::copy(target, {source.at, size_of(source).value});
  (step.final ? job_->kernels->load_input_final : job_->kernels->load_input)(target, source.at, source.elements,
                                                                             job_->call.scale);
}

}  // namespace shoal::engine
