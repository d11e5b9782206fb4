// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>

namespace shoal::cli {

Parsed<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return Parsed<std::int64_t>::bad(fmt::format("must be {} to {}", low, high));
  if (error != std::errc{} || end != text.data() + text.size()) return Parsed<std::int64_t>::bad("is not a whole number");
  if (value < low) return Parsed<std::int64_t>::bad(fmt::format("must be at least {}", low));
  if (value > high) return Parsed<std::int64_t>::bad(fmt::format("must be at most {}", high));
  return Parsed<std::int64_t>::good(value);
}

Parsed<std::uint64_t> parse_size(std::string_view text) {
  using Size = Parsed<std::uint64_t>;
  constexpr std::string_view kForm = "is not a size: digits, then nothing or K, M, G, T";
  std::string_view digits = text;
  int shift = 0;
  if (!text.empty()) {
    constexpr std::string_view kSuffixes = "kKmMgGtT";  // two letters a power of 1024
    if (const auto at = kSuffixes.find(text.back()); at != std::string_view::npos) {
      shift = 10 * static_cast<int>(at / 2 + 1);
      digits.remove_suffix(1);
    }
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::invalid_argument || end != digits.data() + digits.size()) return Size::bad(std::string(kForm));
  // 2^60 bytes: beyond any memory, and far from where sums of two sizes overflow.
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 60;
  if (error == std::errc::result_out_of_range || value > (kLargest >> shift)) return Size::bad("is more than any memory holds");
  return Size::good(value << shift);
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::string_view kSuffixes = "KMGT";
  std::string suffix;
  for (const char letter : kSuffixes) {
    if (bytes == 0 || bytes % 1024 != 0) break;
    bytes /= 1024;
    suffix = letter;
  }
  return fmt::format("{}{}", bytes, suffix);
}

Parsed<double> parse_seconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size()) return Parsed<double>::bad("is not a number of seconds");
  if (!(value >= 0 && value <= 1e9)) return Parsed<double>::bad("must be 0 to 1000000000 seconds");
  return Parsed<double>::good(value);
}

Parsed<std::size_t> parse_choice(std::string_view text, const std::vector<std::string>& choices) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == text) return Parsed<std::size_t>::good(i);
  }
  return Parsed<std::size_t>::bad(fmt::format("is none of: {}", fmt::join(choices, " ")));
}

std::string rank_list(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace shoal::cli
