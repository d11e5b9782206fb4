// SPDX-License-Identifier: Apache-2.0
#include "core/log_format.h"

#include <catch2/catch.hpp>

using namespace shoal::log;
using namespace std::chrono;

namespace {

constexpr std::uint32_t bit(Subsystem part) { return std::uint32_t{1} << static_cast<int>(part); }

}  // namespace

TEST_CASE("log format: lists of parts and levels") {
  CHECK(subsystems_from("INIT,bootstrap,Env") == (bit(Subsystem::init) | bit(Subsystem::bootstrap) | bit(Subsystem::env)));
  CHECK(subsystems_from("") == 0);
  CHECK(subsystems_from("nosuch,,NET") == bit(Subsystem::net));
  CHECK(subsystems_from("ALL") == (std::uint32_t{1} << 18) - 1);
  CHECK(subsystems_from("^DESTROY") == (std::uint32_t{1} << 17) - 1);
  CHECK(subsystems_from("^ALL") == 0);
  CHECK(levels_from("WARN") == 1 << 2);
  CHECK(levels_from("^WARN,TRACE") == (1 << 0 | 1 << 1 | 1 << 3));
}

TEST_CASE("log format: the time as strftime writes it") {
  const system_clock::time_point when = sys_days(2024y / February / 29) + 13h + 5min + 9s + 123456789ns;
  CHECK(format_time("[%F %T] ", when) == "[2024-02-29 13:05:09] ");
  CHECK(format_time("%Y/%m/%d %H:%M:%S.%3f", when) == "2024/02/29 13:05:09.123");
  CHECK(format_time("%1f %9f", when) == "1 123456789");
  CHECK(format_time("%a %b %e %I %p %j %y %R %D %Z %z %%", when) == "Thu Feb 29 01 PM 060 24 13:05 02/29/24 UTC +0000 %");
  CHECK(format_time("%s", when) == "1709211909");
  CHECK(format_time("%Q %0f %", when) == "%Q %0f %");
  CHECK(format_time("", when).empty());
}
