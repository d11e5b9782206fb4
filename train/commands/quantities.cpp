// SPDX-License-Identifier: Apache-2.0
#include "train/commands/quantities.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "train/error.h"

namespace shoal::train {
namespace {

struct Suffix {
  std::string_view text;
  double factor;
};
constexpr std::array kCounts = {Suffix{"", 1},    Suffix{"K", 1e3}, Suffix{"M", 1e6},
                                Suffix{"B", 1e9}, Suffix{"G", 1e9}, Suffix{"T", 1e12}};
constexpr double kKi = 1024;
constexpr std::array kBytes = {Suffix{"", 1},
                               Suffix{"B", 1},
                               Suffix{"KB", 1e3},
                               Suffix{"MB", 1e6},
                               Suffix{"GB", 1e9},
                               Suffix{"TB", 1e12},
                               Suffix{"KiB", kKi},
                               Suffix{"MiB", kKi* kKi},
                               Suffix{"GiB", kKi* kKi* kKi},
                               Suffix{"TiB", kKi* kKi* kKi* kKi}};
constexpr double kLargest = 1e15;  // every whole number up to it is a double

std::uint64_t quantity(std::string_view option, std::string_view text, std::span<const Suffix> suffixes, std::string_view form) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, text.data() + text.size());
  for (const Suffix& suffix : suffixes) {
    if (error != std::errc{} || rest != suffix.text) continue;
    const double all = value * suffix.factor;
    if (all >= 1 && all <= kLargest && all == std::floor(all)) return static_cast<std::uint64_t>(all);
    throw failure(Exit::usage, "{}: {} is not a whole number of 1 to {:g}", option, text, kLargest);
  }
  throw failure(Exit::usage, "{}: {} is not {}", option, text, form);
}

// Three digits, or all that are before the point.
std::string digits(double value) { return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value); }

}  // namespace

std::uint64_t count_from(std::string_view option, std::string_view text) {
  return quantity(option, text, kCounts, "a number such as 7.5e9, 7.5B or 350M");
}

std::uint64_t bytes_from(std::string_view option, std::string_view text) {
  return quantity(option, text, kBytes, "a size such as 80GB or 80GiB");
}

std::string count_text(std::uint64_t count) {
  const double value = static_cast<double>(count);
  if (value >= 999.5e9) return digits(value / 1e12) + " T";
  if (value >= 999.5e6) return digits(value / 1e9) + " B";
  if (value >= 999.5e3) return digits(value / 1e6) + " M";
  return fmt::format("{}", count);
}

std::string bytes_text(std::uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (value >= 999.5e9) return digits(value / 1e12) + " TB";
  if (value >= 999.5e6) return digits(value / 1e9) + " GB";
  if (value >= 999.5e3) return digits(value / 1e6) + " MB";
  return fmt::format("{} B", bytes);
}

}  // namespace shoal::train
