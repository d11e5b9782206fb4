// SPDX-License-Identifier: Apache-2.0
// What options accept, refused with option and value otherwise: CLI11 puts the option's name in front. Pure functions.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <string>

namespace shoal::train {

// A number in (above, up_to].
inline CLI::Validator number_above(double above, double up_to) {
  const auto check = [=](std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value > above && value <= up_to) return {};
    return fmt::format("{} is not a number above {} and up to {}", text, above, up_to);
  };
  return {check, fmt::format("({}..{}]", above, up_to), "number above"};
}

inline CLI::Validator number_within(double from, double below) {
  const auto check = [=](std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= from && value < below) return {};
    return fmt::format("{} is not a number from {} and below {}", text, from, below);
  };
  return {check, fmt::format("[{}..{})", from, below), "number within"};
}

inline CLI::Validator whole(std::uint64_t from, std::uint64_t up_to) {
  const auto check = [=](std::string& text) -> std::string {
    std::uint64_t value = 0;
    const bool digits = !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
    if (digits && CLI::detail::lexical_cast(text, value) && value >= from && value <= up_to) return {};
    return fmt::format("{} is not a whole number from {} to {}", text, from, up_to);
  };
  return {check, fmt::format("[{}..{}]", from, up_to), "whole number"};
}

}  // namespace shoal::train
