// SPDX-License-Identifier: Apache-2.0
#include "engine/transfers.h"

#include <algorithm>

#include "device/reduce.h"
#include "engine/mix.h"

namespace shoal::engine {
namespace {

// Below this a copy into wire memory costs less than a system call that names the user's.
constexpr std::size_t kDirectMinimum = 8 << 10;

// Both ends make the same number exactly if they mean the same transfer of the same length.
link::Tag tag_of(const Transfer& transfer, std::uint64_t communicator) {
  const std::uint64_t all = mix(mix(mix(communicator ^ 0x70327030ULL) ^ transfer.sequence) ^ transfer.size.value);
  return {static_cast<std::uint32_t>(all ^ (all >> 32))};
}

}  // namespace

std::string describe(const Transfer& transfer) {
  return fmt::format("{} #{} of {} bytes {} rank {}", transfer.sending ? "send" : "recv", transfer.sequence, transfer.size.value,
                     transfer.sending ? "to" : "from", transfer.peer.value);
}

void Transfers::start(std::vector<Transfer> transfers, std::uint64_t communicator, int channel, Bytes message) {
  communicator_ = communicator;
  channel_ = channel;
  message_ = message;
  failure_ = {};
  streams_.clear();
  for (Transfer& transfer : transfers) {
    auto found = std::find_if(streams_.begin(), streams_.end(), [&](const Stream& stream) {
      return stream.peer == transfer.peer && stream.sending == transfer.sending;
    });
    if (found == streams_.end()) {
      streams_.push_back({.peer = transfer.peer, .sending = transfer.sending});
      found = streams_.end() - 1;
    }
    found->transfers.push_back(transfer);
  }
  running_ = streams_.size();
}

bool Transfers::advance() {
  bool moved = false;
  for (Stream& stream : streams_)
    if (stream.next < stream.transfers.size()) {
      moved |= advance(stream);
      if (stream.next == stream.transfers.size()) --running_;
    }
  return moved;
}

bool Transfers::advance(Stream& stream) {
  link::Link* link = links_.get(stream.peer, channel_);
  if (link == nullptr) return false;
  bool moved = false;
  while (stream.next < stream.transfers.size() && step(stream, *link)) moved = true;
  return moved;
}

// One message of the current transfer. False: wait.
bool Transfers::step(Stream& stream, link::Link& link) {
  const Transfer& transfer = stream.transfers[stream.next];
  // The last bytes of a direct send have to leave the user's memory before the transfer is over.
  if (stream.sending && link.direct() != nullptr && !link.direct()->sent()) return false;
  if (stream.begun && stream.offset == transfer.size.value) {
    ++stream.next;
    stream.offset = 0;
    stream.begun = false;
    return true;
  }
  const Bytes n{std::min(message_.value, transfer.size.value - stream.offset)};
  if (!(stream.sending ? send(stream, link, transfer, n) : receive(stream, link, transfer, n))) return false;
  stream.offset += n.value;
  stream.begun = true;
  stream.expected = false;
  return true;
}

bool Transfers::send(Stream& stream, link::Link& link, const Transfer& transfer, Bytes n) {
  const std::byte* from = transfer.memory + stream.offset;
  const link::Tag tag = tag_of(transfer, communicator_);
  if (link.direct() != nullptr && n.value >= kDirectMinimum) return link.direct()->send({from, n.value}, tag);
  const std::span<std::byte> wire = link.acquire(n);
  if (wire.data() == nullptr) return false;
  device::copy({wire.data()}, {from, n.value});
  link.commit(tag);
  return true;
}

bool Transfers::receive(Stream& stream, link::Link& link, const Transfer& transfer, Bytes n) {
  std::byte* to = transfer.memory + stream.offset;
  if (!stream.expected) {
    if (link::Direct* direct = n.value > 0 ? link.direct() : nullptr) direct->expect({to, n.value});
    stream.expected = true;
  }
  const link::Message* message = link.front();
  if (message == nullptr) return false;
  if (message->tag != tag_of(transfer, communicator_) || message->payload.size() != n.value) {
    failure_ = Status(Code::invalid_usage,
                      fmt::format("{}: rank {} sends something else (its message has {} bytes, {} expected): the sends and "
                                  "receives between two ranks must pair up in order, with the same number of bytes",
                                  describe(transfer), transfer.peer.value, message->payload.size(), n.value),
                      transfer.peer);
    return false;
  }
  if (n.value > 0 && message->payload.data() != to) device::copy({to}, message->payload);
  link.release();
  return true;
}

const Transfer& Transfers::current() const {
  for (const Stream& stream : streams_)
    if (stream.next < stream.transfers.size()) return stream.transfers[stream.next];
  return streams_.back().transfers.back();
}

std::vector<Transfer> Transfers::open() const {
  std::vector<Transfer> found;
  for (const Stream& stream : streams_)
    if (stream.next < stream.transfers.size()) found.push_back(stream.transfers[stream.next]);
  return found;
}

}  // namespace shoal::engine
