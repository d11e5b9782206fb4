// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them. Pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace shoal::plan_tool {

std::string seconds_text(double seconds);                       // "12.3 us", "4.56 ms", "1.23 s"
std::string gigabytes_text(double bytes_a_second);              // "12.34 GB/s"; 1 GB = 10^9 bytes
std::string bytes_text(double bytes);                           // "64 KiB", "1.5 MiB", "12 B"
std::string share_text(std::uint64_t bytes, std::uint64_t of);  // "1.5 n", "n", "0"
std::string grouped(std::uint64_t number);                      // "1,234,567"

}  // namespace shoal::plan_tool
