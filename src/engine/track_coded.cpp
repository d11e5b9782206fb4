// SPDX-License-Identifier: Apache-2.0
// Steps of a call that names a codec: what is sent is encoded straight into wire memory, what comes is decoded and reduced
// straight out of it, a tile at a time, which stays in the first-level cache. Chunks are encoded one by one, so that a chunk's
// blocks begin where it does, whatever else is in the message: what was rounded once encodes to the same bytes again. Results
// are rounded where they are finished, so that their owner keeps what the others get.
#include <algorithm>
#include <cstring>

#include "compress/codecs/codec.h"
#include "core/expects.h"
#include "engine/track.h"

namespace shoal::engine {

using link::Link;
using plan::Buffer;
using plan::Op;
using plan::Step;

namespace {

constexpr std::size_t kTile = 4096;  // elements; whole blocks of every codec

// f(first element, elements) for tiles of a chunk.
template <typename F>
void for_each_tile(std::size_t elements, F&& f) {
  for (std::size_t first = 0; first < elements; first += kTile) f(first, std::min(kTile, elements - first));
}

struct Tile {
  alignas(64) float values[kTile];
  std::byte* bytes() { return reinterpret_cast<std::byte*>(values); }
};

bool is_aligned(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at) % alignof(float) == 0; }
float* floats(std::byte* at) { return reinterpret_cast<float*>(at); }

}  // namespace

bool Track::execute_coded(const Step& step) {
  switch (step.op) {
    case Op::copy: return do_coded_copy(step);
    case Op::reduce: return do_coded_reduce(step);
    case Op::send: return do_coded_send(step);
    case Op::recv: return do_coded_recv(step);
    case Op::recv_reduce: return do_coded_recv(step);
    case Op::recv_reduce_send: return do_coded_pass_on(step);
    case Op::recv_copy_send: return do_coded_pass_on(step);
    case Op::signal: return do_signal(step);
    case Op::wait: return do_wait(step);
    case Op::copy_shared:
    case Op::reduce_shared: break;
  }
  failure_ =
      fail(Code::internal_error, "{}: {} shares memory, which nothing encodes", describe(job_->call), job_->plan->algorithm);
  return false;
}

// As every rank gets it that receives it.
void Track::round_off(std::byte* values, std::size_t elements) const {
  const compress::Codec& codec = *job_->call.codec;
  Tile tile;
  std::byte wire[kTile * sizeof(float)];
  for_each_tile(elements, [&](std::size_t first, std::size_t n) {
    std::memcpy(tile.values, values + first * sizeof(float), n * sizeof(float));
    codec.encode(tile.values, n, wire, 0);
    decode(wire, {values + first * sizeof(float), n});
  });
}

// A chunk of the source, scaled where it is raw input.
void Track::encode(const Step& step, const Part& source, std::byte* wire) const {
  const compress::Codec& codec = *job_->call.codec;
  const bool scaled = job_->scales_input && step.source.buffer == Buffer::input;
  if (!scaled && is_aligned(source.at)) return codec.encode(floats(source.at), source.elements, wire, 0);
  Tile tile;
  for_each_tile(source.elements, [&](std::size_t first, std::size_t n) {
    const std::byte* from = source.at + first * sizeof(float);
    if (scaled)
      load(step, {tile.values}, {source.at + first * sizeof(float), n});
    else
      std::memcpy(tile.values, from, n * sizeof(float));
    codec.encode(tile.values, n, wire + codec.wire_bytes(first), 0);
  });
}

void Track::decode(const std::byte* wire, const Part& target) const {
  const compress::Codec& codec = *job_->call.codec;
  if (is_aligned(target.at)) return codec.decode(wire, target.elements, floats(target.at));
  Tile tile;
  for_each_tile(target.elements, [&](std::size_t first, std::size_t n) {
    codec.decode(wire + codec.wire_bytes(first), n, tile.values);
    std::memcpy(target.at + first * sizeof(float), tile.values, n * sizeof(float));
  });
}

bool Track::do_coded_copy(const Step& step) {
  const Walk& way = walk(step);
  do_copy(step);
  if (step.source.buffer != Buffer::input || step.target.buffer != Buffer::output) return true;
  for (std::int32_t t = 0; t < way.pieces; ++t) {
    const Part target = part(step.target, way, t);
    round_off(target.at, target.elements);
  }
  return true;
}

bool Track::do_coded_reduce(const Step& step) {
  const Walk& way = walk(step);
  do_reduce(step);
  for (std::int32_t t = 0; step.final && t < way.pieces; ++t) {
    const Part target = part(step.target, way, t);
    round_off(target.at, target.elements);
  }
  return true;
}

bool Track::do_coded_send(const Step& step) {
  const Walk& way = walk(step);
  if (way.total.value == 0) return true;
  Link* out = outgoing(step);
  if (out == nullptr) return false;
  std::byte* to = out->acquire(way.total).data();
  if (to == nullptr) return false;
  for (std::int32_t t = 0; t < way.pieces; ++t) {
    const Part source = part(step.source, way, t);
    encode(step, source, to);
    to += wire_size_of(source).value;
  }
  out->commit(job_->tag);
  return sent(way.total);
}

bool Track::do_coded_recv(const Step& step) {
  const Walk& way = walk(step);
  if (way.total.value == 0) return true;
  Link* in = incoming(step);
  if (in == nullptr) return false;
  const link::Message* message = arrived(*in, {step.from.at(iteration_)}, way.total);
  if (message == nullptr) return false;
  const compress::Codec& codec = *job_->call.codec;
  const std::byte* from = message->payload.data();
  for (std::int32_t t = 0; t < way.pieces; ++t) {
    const Part target = part(step.target, way, t);
    if (step.op == Op::recv) {
      decode(from, target);
    } else {
      const Part source = part(step.source, way, t);
      Tile tile;
      for_each_tile(target.elements, [&](std::size_t first, std::size_t n) {
        codec.decode(from + codec.wire_bytes(first), n, tile.values);
        combine(step, {target.at + first * sizeof(float)}, source.at + first * sizeof(float), tile.bytes(), n);
      });
      if (step.final) round_off(target.at, target.elements);
    }
    from += wire_size_of(target).value;
  }
  in->release();
  return received(way.total);
}

bool Track::do_coded_pass_on(const Step& step) {
  const Walk& way = walk(step);
  if (way.total.value == 0) return true;
  const auto [in, out, message] = both_ends(step, way.total);
  if (message == nullptr) return false;
  const std::span<std::byte> wire = out->acquire(way.total);
  if (wire.data() == nullptr) return false;
  const compress::Codec& codec = *job_->call.codec;
  const bool kept = step.target.buffer != Buffer::none;
  const std::byte* from = message->payload.data();
  if (step.op == Op::recv_copy_send) device::copy({wire.data()}, {from, way.total.value});
  std::byte* to = wire.data();
  for (std::int32_t t = 0; t < way.pieces; ++t) {
    const Part target = kept ? part(step.target, way, t) : Part{};
    const Part source = step.op == Op::recv_copy_send ? target : part(step.source, way, t);
    if (step.op == Op::recv_copy_send) {
      decode(from, target);
    } else {
      Tile tile, sum;
      for_each_tile(source.elements, [&](std::size_t first, std::size_t n) {
        codec.decode(from + codec.wire_bytes(first), n, tile.values);
        combine(step, {sum.values}, source.at + first * sizeof(float), tile.bytes(), n);
        codec.encode(sum.values, n, to + codec.wire_bytes(first), 0);
        if (kept && !step.final) std::memcpy(target.at + first * sizeof(float), sum.values, n * sizeof(float));
      });
      if (kept && step.final) decode(to, target);
    }
    from += wire_size_of(source).value;
    to += wire_size_of(source).value;
  }
  out->commit(job_->tag);
  in->release();
  return sent(way.total) && received(way.total);
}

Bytes Track::wire_size_of(const Part& part) const {
  return job_->call.codec == nullptr ? size_of(part) : Bytes{job_->call.codec->wire_bytes(part.elements)};
}

}  // namespace shoal::engine
