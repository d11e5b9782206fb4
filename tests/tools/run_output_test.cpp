// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <optional>

#include "tools/run/output.h"

using namespace shoal::run;

namespace {

// A sink that ends in a pipe, and what came out of it.
struct Piped {
  Piped() {
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    sink.emplace(ends[1]);
  }
  ~Piped() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  std::string all() {
    std::string text;
    for (int turn = 0; turn < 100000; ++turn) {
      sink->write_some();
      std::array<char, 65536> bytes = {};
      const ssize_t got = ::read(ends[0], bytes.data(), bytes.size());
      if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
      if (got <= 0 && !sink->has_pending()) break;
    }
    return text;
  }
  std::array<int, 2> ends = {-1, -1};
  std::optional<Sink> sink;
};

}  // namespace

TEST_CASE("lines that arrive in pieces come out whole, with one label each") {
  Piped piped;
  LineStream one("[1] ", false), two("[2] ", false);
  one.take("hal", *piped.sink);
  two.take("whole\nsecond\nrest", *piped.sink);
  one.take("f\n\nx", *piped.sink);
  CHECK(piped.all() == "[2] whole\n[2] second\n[1] half\n[1] \n");
  one.flush(*piped.sink);
  two.flush(*piped.sink);
  CHECK(piped.all() == "[1] x\n[2] rest");
}

TEST_CASE("without a label bytes are untouched, zeros and high bytes too") {
  Piped piped;
  LineStream stream("", false);
  std::string bytes;
  for (int i = 0; i < 512; ++i) bytes += static_cast<char>(i);
  stream.take(bytes, *piped.sink);
  stream.flush(*piped.sink);
  CHECK(piped.all() == bytes);
}

TEST_CASE("an unfinished line of one rank is ended before another rank writes") {
  Piped piped;
  LineStream zero("", false), one("[1] ", false);
  zero.take("prompt", *piped.sink);
  zero.flush(*piped.sink);
  one.take("line\n", *piped.sink);
  zero.take("more\n", *piped.sink);
  CHECK(piped.all() == "prompt\n[1] line\nmore\n");
}

TEST_CASE("a single rank's output passes at once, unfinished or not") {
  Piped piped;
  LineStream stream("", true);
  stream.take("a", *piped.sink);
  CHECK(piped.all() == "a");
  CHECK_FALSE(stream.holds_partial());
}

TEST_CASE("a line of a megabyte is not split") {
  Piped piped;
  LineStream stream("[3] ", false), other("[4] ", false);
  const std::string piece(4096, 'x');
  for (int i = 0; i < 256; ++i) {
    stream.take(piece, *piped.sink);
    other.take("y\n", *piped.sink);
  }
  stream.take("\n", *piped.sink);
  const std::string text = piped.all();
  CHECK(text.find("[3] " + std::string(4096 * 256, 'x') + "\n") != std::string::npos);
}

TEST_CASE("a sink whose reader is gone says so and drops the rest") {
  Piped piped;
  ::signal(SIGPIPE, SIG_IGN);
  ::close(piped.ends[0]);
  piped.sink->begin(nullptr);
  piped.sink->add("text\n");
  piped.sink->write_some();
  CHECK(piped.sink->broken());
  CHECK_FALSE(piped.sink->has_pending());
  piped.ends[0] = -1;
}

TEST_CASE("a sink that is not drained asks for a pause") {
  Piped piped;
  piped.sink->begin(nullptr);
  piped.sink->add(std::string(2 << 20, 'x'));
  CHECK(piped.sink->full());
  CHECK(piped.all().size() == 2 << 20);
  CHECK_FALSE(piped.sink->full());
}
