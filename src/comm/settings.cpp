// SPDX-License-Identifier: Apache-2.0
#include "comm/settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "algorithms/algorithms.h"
#include "core/split.h"
#include "transports/transports.h"

namespace shoal::comm {
namespace {

constexpr double kFastestNetwork_Bps = 1e15;

bool parse(std::string_view text, std::int64_t low, std::int64_t high, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= low && value <= high;
}

Status set_shim(Settings& settings, std::string_view text) {
  settings.shim_text = text;
  if (text.empty()) return {};
  const Result<Shim> shim = parse_shim(text);
  if (shim.is_ok()) settings.shim = *shim;
  return shim.status();
}

Status set_calibration(Settings& settings, const std::string& path) {
  if (path.empty()) return {};
  const Result<Calibration> loaded = load_calibration(path);
  if (!loaded.is_ok()) return fail(loaded.status().code(), "SHOAL_CALIBRATION='{}': {}", path, loaded.status().text());
  settings.calibration = *loaded;
  return {};
}

// "latency,overhead,bandwidth", each 0 or more.
bool parse_network(std::string_view text, Calibration::Wire& network) {
  const std::vector<std::string_view> parts = split(text, ',');
  const std::array<double*, 3> into{&network.latency_s, &network.overhead_s, &network.bandwidth_Bps};
  if (parts.size() != into.size()) return false;
  for (std::size_t i = 0; i < into.size(); ++i) {
    const auto [end, error] = std::from_chars(parts[i].data(), parts[i].data() + parts[i].size(), *into[i]);
    if (error != std::errc() || end != parts[i].data() + parts[i].size() || !(*into[i] >= 0 && *into[i] <= kFastestNetwork_Bps))
      return false;
  }
  return true;
}

// As it travels: without it, nothing.
std::string calibration_text(const Settings& settings) {
  return settings.calibration ? text_of(*settings.calibration, ',') : std::string();
}

}  // namespace

bool operator==(const Settings& a, const Settings& b) { return encode(a) == encode(b); }

Result<Settings> make_settings(const Environment& environment) {
  Settings settings;
  settings.slice_is_given = environment.slice_bytes > 0;
  if (settings.slice_is_given) settings.tuning.slice = {static_cast<std::size_t>(environment.slice_bytes)};
  if (environment.in_flight > 0) settings.tuning.in_flight = static_cast<int>(environment.in_flight);
  if (environment.credits > 0) settings.credits = static_cast<int>(environment.credits);
  settings.processors = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  settings.shm_disable = environment.shm_disable;
  settings.loopback_disable = environment.loopback_disable;
  settings.mapped_disable = environment.mapped_disable;
  settings.pull_bytes = environment.pull_bytes;
  if (Status good = set_shim(settings, environment.shim); !good.is_ok()) return good;
  if (Status good = set_calibration(settings, environment.calibration); !good.is_ok()) return good;
  settings.numerics = *engine::numerics_from(environment.numerics);
  if (!environment.algo.empty()) settings.algorithm_text = environment.algo_variable + "=" + environment.algo;
  Result<AlgorithmFilter> filter = AlgorithmFilter::parse(environment.algo_variable, environment.algo);
  if (!filter.is_ok()) return filter.status();
  settings.algorithms = filter.take();
  for (const algorithms::Algorithm& each : algorithms::all())
    if (const int needs = each.build({.world = {4}}).credits; settings.credits < needs)
      return fail(Code::invalid_argument, "SHOAL_CREDITS={}: {} needs at least {}", settings.credits, each.name, needs);
  return settings;
}

Calibration::Wire find_network() {
  link::Endpoint here;
  here.self = {.host_id = "here", .address = "here:1"};
  const link::PeerIdentity elsewhere{.rank = {1}, .host_id = "elsewhere", .address = "elsewhere:1"};
  for (const link::Transport* each : transports::transports()) {
    if (each->carrier() != link::Carrier::network || !each->reaches(here, elsewhere)) continue;
    if (each->name() == "tcp") break;
    const link::Capabilities stated = each->capabilities();
    return {.latency_s = stated.latency_s, .overhead_s = stated.overhead_s, .bandwidth_Bps = stated.bandwidth_Bps};
  }
  return {};
}

std::string encode(const Settings& settings) {
  return fmt::format(
      "slice={} slice_is_given={} in_flight={} credits={} processors={} shm_disable={} loopback_disable={} mapped_disable={} "
      "pull_bytes={} network={},{},{} shim={} calibration={} numerics={} algorithms={}",
      settings.tuning.slice.value, int{settings.slice_is_given}, settings.tuning.in_flight, settings.credits, settings.processors,
      int{settings.shm_disable}, int{settings.loopback_disable}, int{settings.mapped_disable}, settings.pull_bytes,
      settings.network.latency_s, settings.network.overhead_s, settings.network.bandwidth_Bps, settings.shim_text,
      calibration_text(settings), engine::name_of(settings.numerics), settings.algorithm_text);
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
  std::int64_t slice = 0, given = 0, in_flight = 0, credits = 0, processors = 0, shm = 0, loopback = 0, mapped = 0, pull = 0;
  bool good = parse(field("slice"), 1, 16 << 20, slice) && parse(field("slice_is_given"), 0, 1, given) &&
              parse(field("in_flight"), 1, engine::kMaxInFlight, in_flight) && parse(field("credits"), 1, 64, credits) &&
              parse(field("processors"), 0, 1 << 20, processors) && parse(field("shm_disable"), 0, 1, shm) &&
              parse(field("loopback_disable"), 0, 1, loopback) && parse(field("mapped_disable"), 0, 1, mapped) &&
              parse(field("pull_bytes"), -1, std::int64_t{1} << 40, pull);
  good = good && parse_network(field("network"), settings.network);
  good = good && set_shim(settings, field("shim")).is_ok();
  if (const std::string_view calibration = field("calibration"); good && !calibration.empty()) {
    const Result<Calibration> parsed = parse_calibration(calibration, ',');
    good = parsed.is_ok();
    if (good) settings.calibration = *parsed;
  }
  const std::optional<engine::Numerics> numerics = engine::numerics_from(field("numerics"));
  good = good && numerics.has_value() && rest.starts_with("algorithms=");
  if (good) {
    settings.algorithm_text = rest.substr(rest.find('=') + 1);  // the last field: it may hold spaces
    const std::size_t equals = settings.algorithm_text.find('=');
    if (equals != std::string::npos) {
      const std::string_view chosen = settings.algorithm_text;
      Result<AlgorithmFilter> filter = AlgorithmFilter::parse(chosen.substr(0, equals), chosen.substr(equals + 1));
      good = filter.is_ok();
      if (good) settings.algorithms = filter.take();
    }
  }
  if (!good)
    return fail(Code::invalid_usage,
                "rank 0 sent settings that this library does not understand (\"{}\"): all ranks must run the same version", text);
  settings.tuning = {.slice = {static_cast<std::size_t>(slice)}, .in_flight = static_cast<int>(in_flight)};
  settings.slice_is_given = given != 0;
  settings.credits = static_cast<int>(credits);
  settings.processors = static_cast<int>(processors);
  settings.shm_disable = shm != 0;
  settings.loopback_disable = loopback != 0;
  settings.mapped_disable = mapped != 0;
  settings.pull_bytes = pull;
  settings.numerics = *numerics;
  return settings;
}

}  // namespace shoal::comm
