// SPDX-License-Identifier: Apache-2.0
#include "comm/calibration.h"

#include <fmt/ranges.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <set>

#include "core/split.h"

namespace shoal::comm {
namespace {

constexpr std::string_view kTransportKey = "within.transport";
constexpr std::string_view kTransports[] = {"shm", "tcp"};
constexpr std::string_view kPath = "path.", kPathUnit = "_Bps";
constexpr std::size_t kMostBytes = 512 << 10, kLongestName = 64;

struct Key {
  std::string_view name;
  double& (*at)(Calibration&);
  double low, high;
};
constexpr double kShortest_s = 1e-10, kLongest_s = 60, kSlowest_Bps = 1, kFastest_Bps = 1e15;
constexpr std::array<Key, 8> kKeys = {{
    {"within.latency_s", [](Calibration& c) -> double& { return c.within.latency_s; }, kShortest_s, kLongest_s},
    {"within.overhead_s", [](Calibration& c) -> double& { return c.within.overhead_s; }, kShortest_s, kLongest_s},
    {"within.bandwidth_Bps", [](Calibration& c) -> double& { return c.within.bandwidth_Bps; }, kSlowest_Bps, kFastest_Bps},
    {"between.latency_s", [](Calibration& c) -> double& { return c.between.latency_s; }, kShortest_s, kLongest_s},
    {"between.overhead_s", [](Calibration& c) -> double& { return c.between.overhead_s; }, kShortest_s, kLongest_s},
    {"between.bandwidth_Bps", [](Calibration& c) -> double& { return c.between.bandwidth_Bps; }, kSlowest_Bps, kFastest_Bps},
    {"copy_Bps", [](Calibration& c) -> double& { return c.copy_Bps; }, kSlowest_Bps, kFastest_Bps},
    {"reduce_Bps", [](Calibration& c) -> double& { return c.reduce_Bps; }, kSlowest_Bps, kFastest_Bps},
}};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

Result<double> number_in(std::size_t line, std::string_view name, std::string_view value, double low, double high) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_number = error == std::errc() && end == value.data() + value.size();
  if (is_number && number >= low && number <= high) return number;
  return fail(Code::invalid_argument, "line {}: {} = '{}': allowed is a number from {:g} to {:g}", line, name, value, low, high);
}

// "path.alpha:beta_Bps"
Status read_path(std::size_t line, std::string_view name, std::string_view value, Calibration& into) {
  std::string_view hosts = name.substr(kPath.size());
  const bool has_unit = hosts.ends_with(kPathUnit);
  if (has_unit) hosts.remove_suffix(kPathUnit.size());
  const std::size_t colon = hosts.find(':');
  const std::string_view from = hosts.substr(0, colon), to = colon == std::string_view::npos ? "" : hosts.substr(colon + 1);
  if (!has_unit || !is_host_name(from) || !is_host_name(to) || from == to)
    return fail(Code::invalid_argument, "line {}: '{}': allowed is path.FROM:TO_Bps with the names of two hosts", line,
                name.substr(0, 80));
  const Result<double> number = number_in(line, name, value, kSlowest_Bps, kFastest_Bps);
  if (number.is_ok()) into.paths_Bps[{std::string(from), std::string(to)}] = *number;
  return number.status();
}

Status read_value(std::size_t line, std::string_view name, std::string_view value, Calibration& into) {
  if (name == kTransportKey) {
    for (const std::string_view transport : kTransports)
      if (value == transport) into.within_transport = value;
    if (!into.within_transport.empty()) return {};
    return fail(Code::invalid_argument, "line {}: {} = '{}': allowed is {}", line, name, value, fmt::join(kTransports, " or "));
  }
  for (const Key& key : kKeys) {
    if (key.name != name) continue;
    const Result<double> number = number_in(line, name, value, key.low, key.high);
    if (number.is_ok()) key.at(into) = *number;
    return number.status();
  }
  if (name.starts_with(kPath)) return read_path(line, name, value, into);
  return fail(Code::invalid_argument, "line {}: there is no '{}': shoal-perf --calibrate writes such files", line, name);
}

}  // namespace

bool is_host_name(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  return !name.empty() && name.size() <= kLongestName && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

Result<Calibration> parse_calibration(std::string_view text, char separator) {
  Calibration calibration;
  std::set<std::string_view> seen;
  std::size_t line = 0;
  for (const std::string_view whole : split(text, separator)) {
    ++line;
    const std::string_view part = trimmed(whole);
    if (part.empty() || part.front() == '#') continue;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      return fail(Code::invalid_argument, "line {}: '{}': allowed is KEY = VALUE", line, part.substr(0, 80));
    const std::string_view name = trimmed(part.substr(0, equals));
    if (Status good = read_value(line, name, trimmed(part.substr(equals + 1)), calibration); !good.is_ok()) return good;
    if (!seen.insert(name).second) return fail(Code::invalid_argument, "line {}: {} is there twice", line, name);
  }
  if (seen.empty()) return fail(Code::invalid_argument, "it says nothing: allowed are lines KEY = VALUE");
  if (calibration.within_transport.empty() != (calibration.within == Calibration::Wire{}))
    return fail(Code::invalid_argument, "{} goes with within.latency_s and its like: one is there without the other",
                kTransportKey);
  return calibration;
}

Result<Calibration> load_calibration(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) return fail(Code::system_error, "cannot be read: {}", errno_text(errno));
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return fail(Code::system_error, "cannot be read: {}", errno_text(errno));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostBytes) return fail(Code::invalid_argument, "is longer than {} bytes: no calibration is", kMostBytes);
  return parse_calibration(text);
}

std::string text_of(const Calibration& calibration, char separator) {
  std::string text;
  const auto add = [&](std::string_view name, auto value) {
    if (!text.empty()) text += separator;
    text += fmt::format("{}={}", name, value);
  };
  if (!calibration.within_transport.empty()) add(kTransportKey, calibration.within_transport);
  Calibration copy = calibration;
  for (const Key& key : kKeys)
    if (const double value = key.at(copy); value > 0) add(key.name, value);
  for (const auto& [hosts, Bps] : calibration.paths_Bps)
    add(fmt::format("{}{}:{}{}", kPath, hosts.first, hosts.second, kPathUnit), Bps);
  return text;
}

}  // namespace shoal::comm
