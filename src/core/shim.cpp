// SPDX-License-Identifier: Apache-2.0
#include "core/shim.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "core/split.h"

namespace shoal {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kTimes[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};                            // nanoseconds
constexpr Unit kRates[] = {{"bit", 1 / 8.0}, {"Kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}};  // bytes a second

constexpr double kLongest_ns = 60e9;
constexpr double kSlowest_Bps = 1e3 / 8, kFastest_Bps = 1e13 / 8;

// A number and a unit, nothing between and nothing behind.
std::optional<double> quantity(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : units)
    if (unit.name == text) return number * unit.factor;
  return std::nullopt;
}

Status wrong(std::string_view part, std::string_view allowed) {
  return fail(Code::invalid_argument, "'{}': allowed is {}", part, allowed);
}

Status read_time(std::string_view part, std::string_view value, std::chrono::nanoseconds& into) {
  const std::optional<double> ns = quantity(value, kTimes);
  if (!ns || *ns < 0 || *ns > kLongest_ns) return wrong(part, "a number with ns, us, ms or s behind it, 0s to 60s");
  into = std::chrono::nanoseconds(std::llround(*ns));
  return {};
}

Status read_part(std::string_view part, std::string_view name, std::string_view value, Shim& shim) {
  if (name == "latency") return read_time(part, value, shim.latency);
  if (name == "jitter") return read_time(part, value, shim.jitter);
  if (name == "bandwidth") {
    const std::optional<double> rate = quantity(value, kRates);
    if (!rate || *rate < kSlowest_Bps || *rate > kFastest_Bps)
      return wrong(part, "a number with bit, Kbit, Mbit or Gbit behind it, 1Kbit to 10000Gbit (a second)");
    shim.bandwidth_Bps = *rate;
    return {};
  }
  if (name == "seed") {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), shim.seed);
    if (error != std::errc() || end != value.data() + value.size()) return wrong(part, "a whole number, 0 to 2^64 - 1");
    return {};
  }
  return wrong(part, "latency=TIME, bandwidth=RATE, jitter=TIME or seed=NUMBER, separated by commas");
}

}  // namespace

Result<Shim> parse_shim(std::string_view text) {
  Shim shim;
  std::set<std::string_view> seen;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
    if (Status good = read_part(part, name, value, shim); !good.is_ok()) return good;
    if (!seen.insert(name).second) return wrong(part, fmt::format("{} once", name));
  }
  return shim;
}

}  // namespace shoal
