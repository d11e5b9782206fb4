// SPDX-License-Identifier: Apache-2.0
#include "topo/processor_set.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "core/split.h"

namespace shoal::topo {
namespace {

std::optional<std::uint32_t> whole(std::string_view text, int base) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

ProcessorSet::ProcessorSet(std::vector<int> numbers) : numbers_(std::move(numbers)) {
  std::sort(numbers_.begin(), numbers_.end());
  numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
}

bool ProcessorSet::has(int number) const { return std::binary_search(numbers_.begin(), numbers_.end(), number); }

ProcessorSet ProcessorSet::within(const ProcessorSet& other) const {
  ProcessorSet both;
  std::set_intersection(numbers_.begin(), numbers_.end(), other.numbers_.begin(), other.numbers_.end(),
                        std::back_inserter(both.numbers_));
  return both;
}

std::string text_of(const ProcessorSet& set) {
  std::string text;
  const std::vector<int>& numbers = set.numbers();
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += text.empty() ? "" : ",";
    text += last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

Result<ProcessorSet> parse_processors(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return ProcessorSet();
  std::vector<int> numbers;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = whole(part.substr(0, dash), 10);
    const auto last = dash == std::string_view::npos ? first : whole(part.substr(dash + 1), 10);
    if (!first || !last || *first > *last || *last > ProcessorSet::kHighest)
      return fail(Code::invalid_argument, "\"{}\": processors are numbers and ranges up to {}, such as 0-3,8", part.substr(0, 40),
                  ProcessorSet::kHighest);
    for (std::uint32_t n = *first; n <= *last; ++n) numbers.push_back(static_cast<int>(n));
    if (numbers.size() > 4 * ProcessorSet::kHighest)
      return fail(Code::invalid_argument, "processors are named again and again: there are at most {}",
                  ProcessorSet::kHighest + 1);
  }
  return ProcessorSet(std::move(numbers));
}

std::string mask_of(const ProcessorSet& set) {
  std::vector<std::uint32_t> groups(set.empty() ? 1 : static_cast<std::size_t>(set.numbers().back() / 32 + 1));
  for (const int n : set.numbers()) groups[static_cast<std::size_t>(n / 32)] |= std::uint32_t{1} << (n % 32);
  std::string text;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group)
    text += fmt::format("{}{:08x}", text.empty() ? "" : ",", *group);
  return text;
}

Result<ProcessorSet> parse_mask(std::string_view text) {
  const std::vector<std::string_view> groups = split(text, ',');
  const std::size_t most = (ProcessorSet::kHighest + 1) / 32;
  std::vector<int> numbers;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto bits = groups.size() <= most ? whole(groups[groups.size() - 1 - g], 16) : std::nullopt;
    if (!bits)
      return fail(Code::invalid_argument,
                  "\"{}\": a mask is made of at most {} hexadecimal numbers of 32 bits, such as 0000ffff,00000001",
                  text.substr(0, 40), most);
    for (int b = 0; b < 32; ++b)
      if ((*bits >> b & 1) != 0) numbers.push_back(static_cast<int>(g) * 32 + b);
  }
  return ProcessorSet(std::move(numbers));
}

}  // namespace shoal::topo
