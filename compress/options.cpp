// SPDX-License-Identifier: Apache-2.0
#include "compress/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/split.h"

namespace shoal::compress {
namespace {

std::string names_of(std::span<const OptionSpec> specs) {
  std::string all;
  for (const OptionSpec& each : specs) all += (all.empty() ? "" : ", ") + std::string(each.name);
  return all.empty() ? "none" : all;
}

std::string_view first_word(std::string_view words) { return words.substr(0, words.find('|')); }

// The word in the list, so that it lives as long as the list; empty: there is none such.
std::string_view find_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::string_view each = first_word(words);
    if (each == word) return each;
    words.remove_prefix(std::min(words.size(), each.size() + 1));
  }
  return {};
}

}  // namespace

Result<Options> Options::parse(std::string_view text, std::span<const OptionSpec> specs, std::string_view of) {
  Options options;
  for (const OptionSpec& spec : specs) options.values_.push_back({&spec, spec.value, first_word(spec.words)});
  std::vector<bool> given(specs.size());
  while (!text.empty()) {
    const std::string_view each = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), each.size() + 1));
    const std::size_t equals = each.find('=');
    const std::string_view name = each.substr(0, equals);
    std::size_t at = 0;
    while (at < specs.size() && specs[at].name != name) ++at;
    if (at == specs.size())
      return fail(Code::invalid_argument, "{}: there is no option \"{}\"; options are: {}", of, name, names_of(specs));
    if (equals == std::string_view::npos)
      return fail(Code::invalid_argument, "{}: option {} has no value: write {}=VALUE", of, name, name);
    if (given[at]) return fail(Code::invalid_argument, "{}: option {} is given twice", of, name);
    given[at] = true;
    const std::string_view value = each.substr(equals + 1);
    const OptionSpec& spec = specs[at];
    if (!spec.words.empty()) {
      const std::string_view word = find_word(spec.words, value);
      if (word.empty()) return fail(Code::invalid_argument, "{}: {} is \"{}\", must be one of {}", of, name, value, spec.words);
      options.values_[at].word = word;
      continue;
    }
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number))
      return fail(Code::invalid_argument, "{}: {} is \"{}\", not a number", of, name, value);
    if (number < spec.low || number > spec.high)
      return fail(Code::invalid_argument, "{}: {} is {}, allowed are {} to {}", of, name, number, spec.low, spec.high);
    if (spec.whole && number != std::floor(number))
      return fail(Code::invalid_argument, "{}: {} is {}, must be a whole number", of, name, number);
    options.values_[at].number = number;
  }
  return options;
}

const Options::Value& Options::find(std::string_view name) const {
  std::size_t at = 0;
  while (values_[at].spec->name != name) ++at;
  return values_[at];
}

double Options::number(std::string_view name) const { return find(name).number; }
std::string_view Options::word(std::string_view name) const { return find(name).word; }

std::string Options::text() const {
  std::string all;
  for (const Value& each : values_) {
    if (!all.empty()) all += ',';
    all += each.spec->words.empty() ? fmt::format("{}={}", each.spec->name, each.number)
                                    : fmt::format("{}={}", each.spec->name, each.word);
  }
  return all;
}

}  // namespace shoal::compress
