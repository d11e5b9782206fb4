// SPDX-License-Identifier: Apache-2.0
#include "core/shim.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace shoal;
using namespace std::chrono_literals;

namespace {

Shim good(std::string_view text) {
  const Result<Shim> shim = parse_shim(text);
  INFO(text << ": " << shim.status().text());
  REQUIRE(shim.is_ok());
  return *shim;
}

std::string wrong(std::string_view text) {
  const Result<Shim> shim = parse_shim(text);
  INFO(text);
  REQUIRE_FALSE(shim.is_ok());
  CHECK(shim.status().code() == Code::invalid_argument);
  return std::string(shim.status().text());
}

}  // namespace

TEST_CASE("shim: parts in any order, what is not said is as fast as ever") {
  CHECK(good("latency=100ms,bandwidth=100Mbit,jitter=5ms,seed=7") ==
        Shim{.latency = 100ms, .jitter = 5ms, .bandwidth_Bps = 12.5e6, .seed = 7});
  CHECK(good("jitter=5ms,latency=100ms") == Shim{.latency = 100ms, .jitter = 5ms});
  CHECK(good("latency=0s") == Shim{});
  CHECK(good("bandwidth=1Gbit").bandwidth_Bps == 125e6);
  CHECK(good("latency=1s").bandwidth_Bps == std::numeric_limits<double>::infinity());
}

TEST_CASE("shim: units of time and of bandwidth, and fractions") {
  CHECK(good("latency=1500ns").latency == 1500ns);
  CHECK(good("latency=1.5us").latency == 1500ns);
  CHECK(good("latency=0.25ms").latency == 250us);
  CHECK(good("latency=60s").latency == 60s);
  CHECK(good("bandwidth=8000bit").bandwidth_Bps == 1000);
  CHECK(good("bandwidth=56Kbit").bandwidth_Bps == 7000);
  CHECK(good("bandwidth=2.5Mbit").bandwidth_Bps == 312500);
}

TEST_CASE("shim: a wrong part is named, with what is allowed") {
  for (const char* text : {"latency=5", "latency=ms", "latency=", "latency", "latency=-1ms", "latency=61s", "latency=nans",
                           "latency=5 ms", "latency=5msec", "latency=1e99s", "bandwidth=1Gbit,latency=5"})
    CHECK_THAT(wrong(text), Catch::Contains("'latency") && Catch::Contains("ns, us, ms or s"));
  CHECK_THAT(wrong("jitter=1m"), Catch::Contains("'jitter=1m'") && Catch::Contains("0s to 60s"));
  for (const char* text : {"bandwidth=100", "bandwidth=0Mbit", "bandwidth=-1Mbit", "bandwidth=100MB", "bandwidth=10001Gbit",
                           "bandwidth=inf", "bandwidth=1bit"})
    CHECK_THAT(wrong(text), Catch::Contains(text) && Catch::Contains("bit, Kbit, Mbit or Gbit"));
  CHECK_THAT(wrong("seed=x"), Catch::Contains("whole number"));
  CHECK_THAT(wrong("seed=-1"), Catch::Contains("whole number"));
  for (const char* text : {"", "delay=5ms", "latency=5ms,", "=5ms", "latency=5ms;jitter=1ms "})
    CHECK_THAT(wrong(text), Catch::Contains("allowed is"));
  CHECK_THAT(wrong("latency=5ms,latency=6ms"), Catch::Contains("'latency=6ms'") && Catch::Contains("latency once"));
}
