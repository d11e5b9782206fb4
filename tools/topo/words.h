// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "topo/processor_set.h"

namespace shoal::topo_tool {

std::string bytes_text(std::uint64_t bytes);            // "64 KiB", "1.5 GiB"
std::string gigabytes_text(double bytes_a_second);      // "31.5 GB/s"; 1 GB = 10^9 bytes
std::string rate_text(std::int64_t Mbps);               // "100 Gb/s", "2.5 Gb/s", "100 Mb/s"
std::string plural(int number, const std::string& of);  // "1 core", "2 cores"
std::string set_text(const topo::ProcessorSet& set);    // "0-3,8", "unknown"

}  // namespace shoal::topo_tool
