// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/words.h"

#include <fmt/format.h>

#include <cmath>

namespace shoal::topo_tool {
namespace {

// With a decimal where that says more.
std::string short_number(double value) {
  return fmt::format("{:.{}f}", value, value < 100 && std::lround(value * 10) % 10 != 0 ? 1 : 0);
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= 1ULL << 40) return short_number(value / 0x1p40) + " TiB";
  if (bytes >= 1ULL << 30) return short_number(value / 0x1p30) + " GiB";
  if (bytes >= 1ULL << 20) return short_number(value / 0x1p20) + " MiB";
  if (bytes >= 1ULL << 10) return short_number(value / 0x1p10) + " KiB";
  return fmt::format("{} B", bytes);
}

std::string gigabytes_text(double bytes_a_second) { return short_number(bytes_a_second / 1e9) + " GB/s"; }

std::string rate_text(std::int64_t Mbps) {
  return Mbps >= 1000 ? short_number(static_cast<double>(Mbps) / 1000) + " Gb/s" : fmt::format("{} Mb/s", Mbps);
}

std::string plural(int number, const std::string& of) { return fmt::format("{} {}{}", number, of, number == 1 ? "" : "s"); }

std::string set_text(const topo::ProcessorSet& set) { return set.empty() ? "unknown" : text_of(set); }

}  // namespace shoal::topo_tool
