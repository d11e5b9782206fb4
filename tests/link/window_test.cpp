// SPDX-License-Identifier: Apache-2.0
#include "link/window.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstring>

namespace {

using namespace shoal;
using namespace shoal::link;

std::size_t bytes_there(const Window& window) {
  struct stat facts {};
  REQUIRE(fstat(window.descriptor(), &facts) == 0);
  return static_cast<std::size_t>(facts.st_blocks) * 512;
}

TEST_CASE("window: only its head is there until it is filled, and a peer's mapping sees what is written after") {
  constexpr Bytes kSize{300'000}, kHead{1000};
  Window window(kSize, kHead);
  CHECK(window.memory().empty());
  REQUIRE(window.open().is_ok());
  REQUIRE(window.memory().size() == kSize.value);
  CHECK(bytes_there(window) >= kHead.value);
  CHECK(bytes_there(window) < kSize.value / 2);
  std::memset(window.memory().data(), 7, kHead.value);
  CHECK(bytes_there(window) < kSize.value / 2);

  const Descriptor peers(fcntl(window.descriptor(), F_DUPFD_CLOEXEC, 0));
  Result<Mapping> seen = Window::map(peers, window.size());
  REQUIRE(seen.is_ok());
  REQUIRE(window.fill().is_ok());
  REQUIRE(window.fill().is_ok());
  CHECK(bytes_there(window) >= kSize.value);
  std::memset(window.memory().data(), 9, kSize.value);
  CHECK(seen->memory().front() == std::byte{9});
  CHECK(seen->memory().back() == std::byte{9});
  CHECK_FALSE(Window::map(peers, Bytes{kSize.value + 1}).is_ok());
}

}  // namespace
