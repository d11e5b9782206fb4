// SPDX-License-Identifier: Apache-2.0
#include "comm/frame.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string_view>

namespace shoal::comm {
namespace {

std::vector<std::byte> bytes(std::string_view text) {
  const auto span = std::as_bytes(std::span(text));
  return {span.begin(), span.end()};
}

link::Key key(int seed) {
  link::Key made;
  made.bytes.fill(static_cast<std::byte>(seed));
  return made;
}

std::vector<std::byte> frame(FrameEncoder& encoder, std::string_view text) {
  const std::vector<std::byte> payload = bytes(text);
  const auto header = encoder.header(payload);
  std::vector<std::byte> all(header.size() + payload.size());
  std::ranges::copy(payload, std::ranges::copy(header, all.begin()).out);
  return all;
}

TEST_CASE("frame: payloads arrive whole and in order however the bytes are cut") {
  FrameEncoder encoder(key(1), Side::client);
  std::vector<std::byte> wire;
  for (const char* text : {"one", "", "three and more"}) {
    const std::vector<std::byte> next = frame(encoder, text);
    wire.insert(wire.end(), next.begin(), next.end());
  }
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, wire.size()}) {
    FrameDecoder decoder(key(1), Side::client, 100);
    std::vector<std::vector<std::byte>> got;
    for (std::size_t at = 0; at < wire.size(); at += piece) {
      decoder.feed(std::span(wire).subspan(at, std::min(piece, wire.size() - at)));
      while (true) {
        auto next = decoder.next();
        REQUIRE(next.is_ok());
        if (!next->has_value()) break;
        got.push_back(std::move(**next));
      }
    }
    CHECK(got == std::vector{bytes("one"), bytes(""), bytes("three and more")});
  }
}

TEST_CASE("frame: a changed bit anywhere never yields a payload") {
  FrameEncoder encoder(key(1), Side::client);
  const std::vector<std::byte> good = frame(encoder, "payload");
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::vector<std::byte> bad = good;
    bad[i] ^= std::byte{0x10};
    FrameDecoder decoder(key(1), Side::client, 100);
    decoder.feed(bad);
    const auto next = decoder.next();
    REQUIRE_FALSE((next.is_ok() && next->has_value()));
  }
}

TEST_CASE("frame: repeated, reordered, reflected and foreign frames are refused") {
  FrameEncoder encoder(key(1), Side::client);
  const std::vector<std::byte> first = frame(encoder, "same");
  const std::vector<std::byte> second = frame(encoder, "same");
  FrameDecoder repeats(key(1), Side::client, 100);
  repeats.feed(first);
  REQUIRE(repeats.next().is_ok());
  repeats.feed(first);
  CHECK_FALSE(repeats.next().is_ok());
  FrameDecoder reorders(key(1), Side::client, 100);
  reorders.feed(second);
  CHECK_FALSE(reorders.next().is_ok());
  FrameDecoder reflects(key(1), Side::server, 100);
  reflects.feed(first);
  CHECK_FALSE(reflects.next().is_ok());
  FrameDecoder foreign(key(2), Side::client, 100);
  foreign.feed(first);
  CHECK_FALSE(foreign.next().is_ok());
}

TEST_CASE("frame: a length beyond the bound is refused as soon as its header is there") {
  FrameEncoder encoder(key(1), Side::client);
  const std::vector<std::byte> whole = frame(encoder, "12345");
  FrameDecoder enough(key(1), Side::client, 5);
  enough.feed(whole);
  CHECK(enough.next().is_ok());
  FrameDecoder tight(key(1), Side::client, 4);
  tight.feed(std::span(whole).first(kFrameHeader));
  const auto next = tight.next();
  REQUIRE_FALSE(next.is_ok());
  CHECK(next.status().text() == "a frame of 5 bytes, where at most 4 are allowed");
}

}  // namespace
}  // namespace shoal::comm
