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
constexpr std::size_t kMostBytes = 64 << 10;

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

Status read_value(std::size_t line, std::string_view name, std::string_view value, Calibration& into) {
  if (name == kTransportKey) {
    for (const std::string_view transport : kTransports)
      if (value == transport) into.within_transport = value;
    if (!into.within_transport.empty()) return {};
    return fail(Code::invalid_argument, "line {}: {} = '{}': allowed is {}", line, name, value, fmt::join(kTransports, " or "));
  }
  for (const Key& key : kKeys) {
    if (key.name != name) continue;
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool is_number = error == std::errc() && end == value.data() + value.size();
    if (!is_number || !(number >= key.low && number <= key.high))
      return fail(Code::invalid_argument, "line {}: {} = '{}': allowed is a number from {:g} to {:g}", line, name, value, key.low,
                  key.high);
    key.at(into) = number;
    return {};
  }
  return fail(Code::invalid_argument, "line {}: there is no '{}': shoal-perf --calibrate writes such files", line, name);
}

}  // namespace

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
  return text;
}

}  // namespace shoal::comm
