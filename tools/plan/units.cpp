// SPDX-License-Identifier: Apache-2.0
#include "tools/plan/units.h"

#include <fmt/format.h>

namespace shoal::plan_tool {

std::string seconds_text(double seconds) {
  const auto three = [](double value) {  // digits
    return value < 9.995   ? fmt::format("{:.2f}", value)
           : value < 99.95 ? fmt::format("{:.1f}", value)
                           : fmt::format("{:.0f}", value);
  };
  if (seconds == 0) return "0 s";
  if (seconds < 999.5e-9) return three(seconds * 1e9) + " ns";
  if (seconds < 999.5e-6) return three(seconds * 1e6) + " us";
  if (seconds < 999.5e-3) return three(seconds * 1e3) + " ms";
  return three(seconds) + " s";
}

std::string gigabytes_text(double bytes_a_second) { return fmt::format("{:.2f} GB/s", bytes_a_second / 1e9); }

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

std::string share_text(std::uint64_t bytes, std::uint64_t of) {
  if (bytes == 0) return "0";
  return bytes == of ? "n" : fmt::format("{:.4g} n", static_cast<double>(bytes) / static_cast<double>(of));
}

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace shoal::plan_tool
