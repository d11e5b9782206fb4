// SPDX-License-Identifier: Apache-2.0
// Two ranks of one thread with a verbs link between them, over a fabric of the test's. Inside the project's test programs only.
#pragma once

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <span>
#include <string>

#include "device/host_memory.h"
#include "transports/pair.h"
#include "transports/verbs/fake_verbs.h"
#include "transports/verbs/transport.h"

namespace shoal::transports {

using verbs::FakeFabric;

inline constexpr std::size_t kMax = 100'000;

// One rank's endpoint, and its end of a link in the making or made.
struct Side {
  link::Endpoint endpoint;
  std::unique_ptr<link::Connection> connection;
  std::unique_ptr<link::Link> link;
  Status failure;

  void progress() {
    if (link || !failure.is_ok()) return;
    Result<std::unique_ptr<link::Link>> made = connection->progress();
    if (made.is_ok())
      link = made.take();
    else
      failure = made.status(), connection.reset();
  }
};

// Two ranks of one thread.
class Two {
 public:
  explicit Two(FakeFabric& fabric, const IbOptions& options = {})
      : transport_([&fabric] { return Result(fabric.verbs()); }, options) {
    for (int i = 0; i < 2; ++i) {
      side(i).endpoint.self = identity(i, Apart::processes);
      side(i).endpoint.max_message = {kMax};
      side(i).endpoint.shm_disable = true;
    }
  }
  bool reaches() { return transport_.reaches(side(0).endpoint, side(1).endpoint.self); }
  void connect() {
    REQUIRE(reaches());
    Streams streams = make_streams(link::Carrier::network, "127.0.0.1");
    side(0).connection = transport_.connect(side(0).endpoint, side(1).endpoint.self, 0, std::move(streams.connecting), true);
    side(1).connection = transport_.connect(side(1).endpoint, side(0).endpoint.self, 0, std::move(streams.accepting), false);
    for (int turn = 0; turn < 1'000'000 && !(settled(0) && settled(1)); ++turn)
      for (Side& each : sides_) each.progress();
    REQUIRE((settled(0) && settled(1)));
  }
  void must_connect() {
    connect();
    REQUIRE(text(0) == "success");
    REQUIRE(text(1) == "success");
  }

  Side& side(int i) { return sides_[static_cast<std::size_t>(i)]; }
  link::Link& link(int i) { return *side(i).link; }
  std::string text(int i) { return std::string(side(i).failure.text()); }
  std::string health(int i) { return std::string(link(i).health().text()); }

  void send(int from, std::size_t bytes, std::uint32_t tag) {
    const auto payload = pattern(bytes, tag);
    std::span<std::byte> memory;
    for (int turn = 0; turn < 10'000 && memory.data() == nullptr; ++turn) memory = link(from).acquire({bytes});
    REQUIRE(memory.data() != nullptr);
    std::copy(payload.begin(), payload.end(), memory.begin());
    link(from).commit({tag});
  }
  const link::Message& next(int to) {
    const link::Message* message = nullptr;
    for (int turn = 0; turn < 10'000 && message == nullptr; ++turn) {
      link(1 - to).progress();
      message = link(to).front();
    }
    REQUIRE(message != nullptr);
    return *message;
  }
  void receive(int to, std::size_t bytes, std::uint32_t tag) {
    const link::Message& message = next(to);
    const auto expected = pattern(bytes, tag);
    CHECK(message.tag.value == tag);
    CHECK(std::equal(expected.begin(), expected.end(), message.payload.begin(), message.payload.end()));
    link(to).release();
  }

 private:
  bool settled(int i) { return side(i).link != nullptr || !side(i).failure.is_ok(); }
  VerbsTransport transport_;
  std::array<Side, 2> sides_;
};

class LibraryMemory {
 public:
  explicit LibraryMemory(std::size_t bytes) : start_(*device::allocate_host({bytes})), bytes_(bytes) {}
  LibraryMemory(const LibraryMemory&) = delete;
  LibraryMemory& operator=(const LibraryMemory&) = delete;
  ~LibraryMemory() { CHECK(device::free_host(start_).is_ok()); }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(start_), bytes_}; }

 private:
  void* start_;
  std::size_t bytes_;
};

}  // namespace shoal::transports
