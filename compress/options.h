// SPDX-License-Identifier: Apache-2.0
// Options of a compressor: "density=0.001,momentum=0.9" against a list of what there is. Values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace shoal::compress {

// One option: a number within [low, high], or one of several words.
struct OptionSpec {
  std::string_view name;
  std::string_view about;    // one line, with the unit
  double value = 0;          // default of a number
  double low = 0, high = 0;  // of a number, inclusive
  bool whole = false;        // integers only
  std::string_view words;    // not empty: "gather|split|auto", the first one is the default
};

class Options {
 public:
  // invalid_argument for an unknown name (the known ones are listed), a value out of range, not a number, given twice.
  // `of`: the compressor's name, for messages.
  static Result<Options> parse(std::string_view text, std::span<const OptionSpec> specs, std::string_view of);

  // The option must be in the specs.
  double number(std::string_view name) const;
  std::size_t whole(std::string_view name) const { return static_cast<std::size_t>(number(name)); }
  bool flag(std::string_view name) const { return number(name) != 0; }
  std::string_view word(std::string_view name) const;

  // All options with their values, in the order of the specs: "density=0.001,momentum=0.9". Equal texts are equal options.
  std::string text() const;

 private:
  struct Value {
    const OptionSpec* spec;
    double number;
    std::string_view word;
  };
  const Value& find(std::string_view name) const;
  std::vector<Value> values_;  // one a spec
};

}  // namespace shoal::compress
