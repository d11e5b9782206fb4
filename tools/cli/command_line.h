// SPDX-License-Identifier: Apache-2.0
// Command lines on top of CLI11: options that parse strictly, and refusals that are one line naming option and value. A
// CommandLine lives in main's thread, as long as parsing takes; the targets it fills belong to the caller.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tools/cli/values.h"

namespace shoal::cli {

// What came of a command line. A program goes on if `proceed`; otherwise it prints `text` and returns `exit_code`.
struct Outcome {
  bool proceed = true;
  int exit_code = 0;
  std::string text;      // one line for a refusal, without the program's name; the whole help for --help
  bool is_help = false;  // goes to standard output; refusals go to standard error
};

class CommandLine {
 public:
  // `usage` is the help's first line after the description; `refusal_code` the exit code for an option or value that is refused.
  CommandLine(std::string description, std::string usage, int refusal_code);

  // `names` as CLI11 takes them ("-n,--iters"). A repeated option counts as its last value.
  template <typename Number>
  void integer(const std::string& names, Number& target, std::int64_t low, const std::string& help,
               std::int64_t high = std::numeric_limits<Number>::max()) {
    value(names, help, "N", [&target, low, high](const std::string& text) {
      const auto parsed = parse_integer(text, low, high);
      if (parsed.is_ok()) target = static_cast<Number>(*parsed);
      return parsed.why();
    });
  }
  void boolean(const std::string& names, bool& target, const std::string& help);  // takes 0 or 1, as nccl-tests' do
  void flag(const std::string& names, bool& target, const std::string& help);     // takes nothing
  void size(const std::string& names, std::uint64_t& target, const std::string& help);
  void seconds(const std::string& names, double& target, const std::string& help);

  // Any other value: `accept` stores the text and returns "", or says why not.
  void value(const std::string& names, const std::string& help, const std::string& type_name,
             std::function<std::string(const std::string&)> accept);

  CLI::App& app() { return app_; }
  bool given(const std::string& name) const { return app_.count(name) > 0; }
  std::string text_of(const std::string& name) const { return app_.get_option(name)->as<std::string>(); }  // one that is given

  // As value, but a repeated option counts each time, in order.
  void list(const std::string& names, const std::string& help, const std::string& type_name,
            std::function<std::string(const std::string&)> accept);

  Outcome parse(const std::vector<std::string>& arguments);

 private:
  CLI::App app_;
  int refusal_code_;
};

// "-b/--minbytes 8x: is not a size": how every refusal reads.
std::string refusal(const std::string& names, const std::string& text, const std::string& why);

}  // namespace shoal::cli
