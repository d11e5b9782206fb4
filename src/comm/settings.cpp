// SPDX-License-Identifier: Apache-2.0
#include "comm/settings.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "algorithms/algorithms.h"

namespace shoal::comm {
namespace {

std::string known_algorithms() {
  std::string names;
  for (const algorithms::Algorithm& each : algorithms::all()) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

bool parse(std::string_view text, std::int64_t low, std::int64_t high, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= low && value <= high;
}

}  // namespace

bool operator==(const Settings& a, const Settings& b) { return encode(a) == encode(b); }

Result<Settings> make_settings(const Environment& environment) {
  Settings settings;
  if (environment.slice_bytes > 0) settings.tuning.slice = {static_cast<std::size_t>(environment.slice_bytes)};
  if (environment.in_flight > 0) settings.tuning.in_flight = static_cast<int>(environment.in_flight);
  if (environment.credits > 0) settings.credits = static_cast<int>(environment.credits);
  settings.processors = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  settings.shm_disable = environment.shm_disable;
  settings.loopback_disable = environment.loopback_disable;
  settings.algorithm = environment.algo;
  if (!settings.algorithm.empty() && algorithms::find(plan::Collective::all_reduce, settings.algorithm) == nullptr)
    return fail(Code::invalid_argument, "SHOAL_ALGO=\"{}\": there is no such algorithm; there are: {}", settings.algorithm,
                known_algorithms());
  for (const algorithms::Algorithm& each : algorithms::all())
    if (const int needs = each.build({2}, {0}).credits; settings.credits < needs)
      return fail(Code::invalid_argument, "SHOAL_CREDITS={}: {} needs at least {}", settings.credits, each.name, needs);
  return settings;
}

std::string encode(const Settings& settings) {
  return fmt::format("slice={} in_flight={} credits={} processors={} shm_disable={} loopback_disable={} algorithm={}",
                     settings.tuning.slice.value, settings.tuning.in_flight, settings.credits, settings.processors,
                     int{settings.shm_disable}, int{settings.loopback_disable}, settings.algorithm);
}

Result<Settings> decode_settings(const std::string& text) {
  Settings settings;
  std::string_view rest = text;
  const auto field = [&rest](std::string_view name) -> std::string_view {
    if (!rest.starts_with(name) || rest.size() <= name.size() || rest[name.size()] != '=') return {};
    rest.remove_prefix(name.size() + 1);
    const std::string_view value = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), value.size() + 1));
    return value;
  };
  std::int64_t slice = 0, in_flight = 0, credits = 0, processors = 0, shm = 0, loopback = 0;
  const bool good = parse(field("slice"), 1, 16 << 20, slice) && parse(field("in_flight"), 1, engine::kMaxInFlight, in_flight) &&
                    parse(field("credits"), 1, 64, credits) && parse(field("processors"), 0, 1 << 20, processors) &&
                    parse(field("shm_disable"), 0, 1, shm) && parse(field("loopback_disable"), 0, 1, loopback);
  settings.algorithm = field("algorithm");
  if (!good || (!settings.algorithm.empty() && algorithms::find(plan::Collective::all_reduce, settings.algorithm) == nullptr))
    return fail(Code::invalid_usage,
                "rank 0 sent settings that this library does not understand (\"{}\"): all ranks must run the same version", text);
  settings.tuning = {.slice = {static_cast<std::size_t>(slice)}, .in_flight = static_cast<int>(in_flight)};
  settings.credits = static_cast<int>(credits);
  settings.processors = static_cast<int>(processors);
  settings.shm_disable = shm != 0;
  settings.loopback_disable = loopback != 0;
  return settings;
}

}  // namespace shoal::comm
