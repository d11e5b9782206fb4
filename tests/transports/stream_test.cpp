// SPDX-License-Identifier: Apache-2.0
// The TCP link against the bytes on its stream: wherever the kernel cuts them, in either direction, the messages are the same.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "transports/pair.h"
#include "transports/tcp/frame.h"
#include "transports/tcp/link.h"

namespace shoal::transports {
namespace {

constexpr std::size_t kMax = 20'000;
// None, small ones that are read together, ones long enough to land, the longest.
const std::vector<std::size_t> kLengths{0, 1, 40, 9'000, 0, 0, kMax, 3, kMax, 8'192, 8'191};

std::vector<std::byte> frame_of(std::span<const std::byte> payload, std::uint32_t tag) {
  const FrameHeader header{.tag = tag, .length = payload.size()};
  std::vector<std::byte> wire(kFrameHeader + payload.size());
  std::memcpy(wire.data(), &header, kFrameHeader);
  std::copy(payload.begin(), payload.end(), wire.begin() + kFrameHeader);
  return wire;
}

// The messages of kLengths, one behind the other, and where each frame starts.
struct Wire {
  Wire() {
    for (std::size_t i = 0; i < kLengths.size(); ++i) {
      starts.push_back(bytes.size());
      const auto frame = frame_of(pattern(kLengths[i], i), static_cast<std::uint32_t>(i));
      bytes.insert(bytes.end(), frame.begin(), frame.end());
    }
  }
  std::vector<std::byte> bytes;
  std::vector<std::size_t> starts;
};

// A link, and the other end of its stream as plain bytes.
struct Rig {
  Rig() : raw(std::move(streams.connecting)) {
    link::Endpoint endpoint;
    endpoint.self = identity(1, Apart::processes);
    endpoint.max_message = {kMax};
    endpoint.credits = 3;
    link.emplace(endpoint, identity(0, Apart::processes), std::move(streams.accepting));
  }
  void say(std::span<const std::byte> bytes) {
    for (int turn = 0; !bytes.empty(); ++turn) {
      REQUIRE(turn < 1'000'000);
      const link::Transfer put = link::write_some(raw.get(), bytes);
      REQUIRE_FALSE(put.closed);
      bytes = bytes.subspan(put.bytes);
    }
  }
  const link::Message& next() {
    const link::Message* message = nullptr;
    for (int turn = 0; message == nullptr; ++turn) {
      REQUIRE(turn < 1'000'000);
      link->progress();
      message = link->front();
    }
    return *message;
  }
  Streams streams = make_streams(link::Carrier::network, "127.0.0.1");
  link::Descriptor raw;
  std::optional<TcpLink> link;
};

// Every byte near the start and the end of a frame, and some between.
std::vector<std::size_t> cuts(const Wire& wire) {
  std::vector<std::size_t> all;
  for (const std::size_t start : wire.starts)
    for (std::size_t at = start - std::min<std::size_t>(start, 20); at <= start + kFrameHeader + 4; ++at) all.push_back(at);
  for (std::size_t at = 0; at < wire.bytes.size(); at += 997) all.push_back(at);
  return all;
}

}  // namespace

TEST_CASE("tcp: frames that come in two pieces, cut anywhere, are the same messages, whether or not they are expected") {
  const bool expecting = GENERATE(false, true);
  CAPTURE(expecting);
  const Wire wire;
  Rig rig;
  std::vector<std::byte> target(kMax);
  for (const std::size_t cut : cuts(wire)) {
    rig.say(std::span(wire.bytes).first(std::min(cut, wire.bytes.size())));
    bool whole = cut >= wire.bytes.size();
    for (std::size_t i = 0; i < kLengths.size(); ++i) {
      if (expecting && kLengths[i] > 0) rig.link->direct()->expect(std::span(target).first(kLengths[i]));
      const std::size_t end = i + 1 < kLengths.size() ? wire.starts[i + 1] : wire.bytes.size();
      if (!whole && cut < end) {
        rig.link->progress();
        if (rig.link->front() != nullptr) FAIL("message " << i << " is there before its end, cut at " << cut);
        rig.say(std::span(wire.bytes).subspan(cut));
        whole = true;
      }
      const link::Message& message = rig.next();
      const auto expected = pattern(kLengths[i], i);
      if (message.tag.value != i || !std::equal(message.payload.begin(), message.payload.end(), expected.begin(), expected.end()))
        FAIL("message " << i << " is another one, cut at " << cut);
      rig.link->release();
    }
  }
  CHECK(rig.link->health().is_ok());
}

TEST_CASE("tcp: what a full socket takes in pieces leaves in one piece, from wire and from user memory") {
  const std::size_t at_a_time = GENERATE(7, 15, 16, 17, 4'096, 65'536);  // bytes that the other end reads
  CAPTURE(at_a_time);
  const Wire wire;
  Rig rig;
  const int least = 1, little = 8 << 10;  // the kernel makes the least a few KiB
  REQUIRE(::setsockopt(rig.link->wakeup().descriptor, SOL_SOCKET, SO_SNDBUF, &least, sizeof least) == 0);
  REQUIRE(::setsockopt(rig.raw.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little) == 0);

  std::vector<std::vector<std::byte>> payloads;
  for (std::size_t i = 0; i < kLengths.size(); ++i) payloads.push_back(pattern(kLengths[i], i));
  std::vector<std::byte> came, piece(at_a_time);
  std::size_t next = 0;
  int idle = 0;
  while (came.size() < wire.bytes.size()) {
    if (next < payloads.size()) {
      const std::vector<std::byte>& payload = payloads[next];
      const link::Tag tag{static_cast<std::uint32_t>(next)};
      if (next % 2 == 1) {
        next += rig.link->direct()->send(payload, tag) ? 1 : 0;
      } else if (const auto memory = rig.link->acquire({payload.size()}); memory.data() != nullptr) {
        std::copy(payload.begin(), payload.end(), memory.begin());
        rig.link->commit(tag);
        ++next;
      }
    }
    rig.link->progress();
    const link::Transfer got = link::read_some(rig.raw.get(), piece);
    REQUIRE_FALSE(got.closed);
    if (got.bytes == 0) {  // a window this small is opened by timers now and then
      REQUIRE(++idle < 200'000);
      ::usleep(100);
    }
    came.insert(came.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(got.bytes));
  }
  CHECK(came == wire.bytes);
  rig.link->progress();
  CHECK(rig.link->flushed());
  CHECK(rig.link->direct()->sent());
}

}  // namespace shoal::transports
