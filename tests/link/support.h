// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: pairs of connected streams, a count of open descriptors, waiting with an end.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "link/handshake.h"
#include "link/socket.h"

namespace shoal::link::testing {

inline std::pair<Descriptor, Descriptor> stream_pair() {
  int ends[2] = {-1, -1};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

// Including the one that the count itself needs.
inline std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

// Until `done` or, so that a test ends, half a minute. Looks every millisecond.
template <typename F>
bool eventually(F&& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Connects as a peer or a stranger would; waits for it.
inline Descriptor connected_to(const Listener& listener, bool local) {
  Result<Descriptor> stream = local ? start_connect_local(listener.address) : start_connect_tcp(listener.address);
  INFO(stream.status().text());
  REQUIRE(stream.is_ok());
  REQUIRE(eventually([&] {
    const Result<bool> finished = connect_finished(*stream, listener.address);
    REQUIRE(finished.is_ok());
    return *finished;
  }));
  return stream.take();
}

// A name that no other test process on this host has.
inline std::string unique_name(std::string_view what) {
  static int count = 0;
  return "shoal-test-" + std::string(what) + "-" + std::to_string(getpid()) + "-" + std::to_string(count++);
}

}  // namespace shoal::link::testing
