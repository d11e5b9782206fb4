// SPDX-License-Identifier: Apache-2.0
#include "core/log_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/split.h"

namespace shoal::log {
namespace {

constexpr std::string_view kSubsystems[] = {"INIT",   "COLL",      "P2P",   "SHM",        "NET",  "GRAPH",
                                            "TUNING", "ENV",       "ALLOC", "ALLOC_HOST", "CALL", "PROXY",
                                            "NVLS",   "BOOTSTRAP", "REG",   "PROFILE",    "RAS",  "DESTROY"};
static_assert(std::size(kSubsystems) == static_cast<std::size_t>(Subsystem::destroy) + 1);
constexpr std::string_view kLevels[] = {"", "VERSION", "WARN", "INFO", "TRACE"};  // by log.h's numbers

constexpr std::string_view kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

bool same_word(std::string_view a, std::string_view b) {
  const auto capital = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return capital(x) == capital(y); });
}

template <std::size_t N>
std::uint32_t mask_from(std::string_view list, const std::string_view (&names)[N]) {
  constexpr std::uint32_t kAll = (std::uint32_t{1} << N) - 1;
  const bool all_but = list.starts_with('^');
  if (all_but) list.remove_prefix(1);
  std::uint32_t mask = 0;
  for (const std::string_view word : split(list, ',')) {
    if (same_word(word, "ALL")) mask = kAll;
    for (std::size_t i = 0; i < N; ++i)
      if (!word.empty() && same_word(word, names[i])) mask |= std::uint32_t{1} << i;
  }
  return all_but ? kAll & ~mask : mask;
}

struct Moment {
  std::chrono::sys_days day;
  std::chrono::year_month_day date;
  std::chrono::hh_mm_ss<std::chrono::nanoseconds> time;
};

// One conversion's text; nothing for a letter that is not known.
std::string convert(char letter, const Moment& m) {
  using namespace std::chrono;
  const int year_number = static_cast<int>(m.date.year());
  const unsigned month_number = static_cast<unsigned>(m.date.month()), day_number = static_cast<unsigned>(m.date.day());
  const auto hour = m.time.hours().count(), minute = m.time.minutes().count(), second = m.time.seconds().count();
  switch (letter) {
    case 'F': return fmt::format("{:04}-{:02}-{:02}", year_number, month_number, day_number);
    case 'T': return fmt::format("{:02}:{:02}:{:02}", hour, minute, second);
    case 'R': return fmt::format("{:02}:{:02}", hour, minute);
    case 'D': return fmt::format("{:02}/{:02}/{:02}", month_number, day_number, year_number % 100);
    case 'Y': return fmt::format("{:04}", year_number);
    case 'y': return fmt::format("{:02}", year_number % 100);
    case 'm': return fmt::format("{:02}", month_number);
    case 'd': return fmt::format("{:02}", day_number);
    case 'e': return fmt::format("{:2}", day_number);
    case 'j': return fmt::format("{:03}", (m.day - sys_days(m.date.year() / January / 1)).count() + 1);
    case 'H': return fmt::format("{:02}", hour);
    case 'I': return fmt::format("{:02}", (hour + 11) % 12 + 1);
    case 'p': return hour < 12 ? "AM" : "PM";
    case 'M': return fmt::format("{:02}", minute);
    case 'S': return fmt::format("{:02}", second);
    case 's': return fmt::format("{}", (m.day.time_since_epoch() + duration_cast<seconds>(m.time.to_duration())) / seconds(1));
    case 'a': return std::string(kDays[weekday(m.day).c_encoding()]);
    case 'b':
    case 'h': return std::string(kMonths[month_number - 1]);
    case 'z': return "+0000";
    case 'Z': return "UTC";
    case 'n': return "\n";
    case 't': return "\t";
    case '%': return "%";
    default: return "";
  }
}

}  // namespace

std::uint32_t subsystems_from(std::string_view list) { return mask_from(list, kSubsystems); }
std::uint32_t levels_from(std::string_view list) { return mask_from(list, kLevels); }

std::string format_time(std::string_view format, std::chrono::system_clock::time_point when) {
  const auto day = std::chrono::floor<std::chrono::days>(when);
  const Moment moment{day, day, std::chrono::hh_mm_ss(std::chrono::duration_cast<std::chrono::nanoseconds>(when - day))};
  std::string text;
  while (!format.empty()) {
    const std::size_t width = format.size() > 2 && format[0] == '%' && format[1] >= '1' && format[1] <= '9' && format[2] == 'f'
                                  ? static_cast<std::size_t>(format[1] - '0')
                                  : 0;
    const std::string known = width > 0 ? fmt::format("{:09}", moment.time.subseconds().count()).substr(0, width)
                              : format[0] == '%' && format.size() > 1 ? convert(format[1], moment)
                                                                      : "";
    const std::size_t used = width > 0 ? 3 : known.empty() ? 1 : 2;
    text += known.empty() ? format.substr(0, 1) : std::string_view(known);
    format.remove_prefix(used);
  }
  return text;
}

}  // namespace shoal::log
