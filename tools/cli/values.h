// SPDX-License-Identifier: Apache-2.0
// Values from text, strictly: the whole text is the value or the answer says what would have been one. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::cli {

// A value, or why the text is none: a clause such as "must be at least 1".
template <typename T>
class Parsed {
 public:
  static Parsed good(T value) {
    Parsed parsed;
    parsed.value_ = std::move(value);
    return parsed;
  }
  static Parsed bad(std::string why) {
    Parsed parsed;
    parsed.why_ = std::move(why);
    return parsed;
  }
  bool is_ok() const { return value_.has_value(); }
  const T& operator*() const { return *value_; }
  const std::string& why() const { return why_; }

 private:
  std::optional<T> value_;
  std::string why_;
};

// Decimal digits, a minus sign allowed: low <= value <= high.
Parsed<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high);

// Bytes: digits, then nothing or K, M, G, T (binary, either case): "64m" is 67108864.
Parsed<std::uint64_t> parse_size(std::string_view text);

// A size as parse_size reads it, the shortest way: "64M", "8", "1025".
std::string size_text(std::uint64_t bytes);

// Seconds with or without a fraction: "30", "0.5"; 0 <= value <= a billion.
Parsed<double> parse_seconds(std::string_view text);

// One of `choices`, by its position.
Parsed<std::size_t> parse_choice(std::string_view text, const std::vector<std::string>& choices);

// Ranks as people write them: {0,1,2,5} is "0-2,5". The ranks ascend.
std::string rank_list(const std::vector<int>& ranks);

}  // namespace shoal::cli
