// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace shoal::cli {

namespace {

// CLI11's help with a usage line of our own.
class UsageFormatter : public CLI::Formatter {
 public:
  explicit UsageFormatter(std::string usage) : usage_(std::move(usage)) { column_width(34); }
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override { return "Usage: " + usage_ + "\n"; }

 private:
  std::string usage_;
};

}  // namespace

std::string refusal(const std::string& names, const std::string& text, const std::string& why) {
  std::string shown = names;
  std::replace(shown.begin(), shown.end(), ',', '/');
  return fmt::format("{} {}: {}", shown, text.empty() ? "''" : text, why);
}

CommandLine::CommandLine(std::string description, std::string usage, int refusal_code)
    : app_(std::move(description)), refusal_code_(refusal_code) {
  app_.formatter(std::make_shared<UsageFormatter>(std::move(usage)));
  app_.set_help_flag("-h,--help", "This text");
}

void CommandLine::value(const std::string& names, const std::string& help, const std::string& type_name,
                        std::function<std::string(const std::string&)> accept) {
  app_.add_option_function<std::string>(
          names,
          [names, accept = std::move(accept)](const std::string& text) {
            const std::string why = accept(text);
            // Thrown through CLI11 only; parse() below catches it.
            if (!why.empty()) throw CLI::ValidationError(refusal(names, text, why));
          },
          help)
      ->type_name(type_name)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void CommandLine::list(const std::string& names, const std::string& help, const std::string& type_name,
                       std::function<std::string(const std::string&)> accept) {
  app_.add_option_function<std::vector<std::string>>(
          names,
          [names, accept = std::move(accept)](const std::vector<std::string>& texts) {
            for (const std::string& text : texts)
              if (const std::string why = accept(text); !why.empty()) throw CLI::ValidationError(refusal(names, text, why));
          },
          help)
      ->type_name(type_name)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::boolean(const std::string& names, bool& target, const std::string& help) {
  value(names, help, "0|1", [&target](const std::string& text) {
    const auto parsed = parse_integer(text, 0, 1);
    if (parsed.is_ok()) target = *parsed == 1;
    return parsed.why();
  });
}

void CommandLine::flag(const std::string& names, bool& target, const std::string& help) { app_.add_flag(names, target, help); }

void CommandLine::size(const std::string& names, std::uint64_t& target, const std::string& help) {
  value(names, help, "SIZE", [&target](const std::string& text) {
    const auto parsed = parse_size(text);
    if (parsed.is_ok()) target = *parsed;
    return parsed.why();
  });
}

void CommandLine::seconds(const std::string& names, double& target, const std::string& help) {
  value(names, help, "S", [&target](const std::string& text) {
    const auto parsed = parse_seconds(text);
    if (parsed.is_ok()) target = *parsed;
    return parsed.why();
  });
}

Outcome CommandLine::parse(const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 eats from the back
  try {
    app_.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    return {false, 0, app_.help(), true};
  } catch (const CLI::ExtrasError&) {
    const auto extras = app_.remaining();
    return {false, refusal_code_, fmt::format("{}: is no option of this program", extras.empty() ? "?" : extras.front()), false};
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string line = error.what();  // begins with the option's name and a colon
    return {false, refusal_code_, line.substr(0, line.find(':')) + ": needs a value", false};
  } catch (const CLI::ParseError& error) {
    std::string line = error.what();
    std::replace(line.begin(), line.end(), '\n', ' ');
    return {false, refusal_code_, line, false};
  }
  return {};
}

}  // namespace shoal::cli
