// SPDX-License-Identifier: Apache-2.0
// Counts and sizes as people write them: "7.5e9", "7.5B", "80GB", "64 GiB" without the space. Exact: what is no whole number is
// refused. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::train {

// Both throw Error (Exit::usage) that begins with the option's name. A count takes K, M, B (or G), T: powers of 1000.
std::uint64_t count_from(std::string_view option, std::string_view text);
// Bytes take KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (of 1024), B or nothing.
std::uint64_t bytes_from(std::string_view option, std::string_view text);

std::string count_text(std::uint64_t count);  // "7.5 B", "360 M", "12"
std::string bytes_text(std::uint64_t bytes);  // "31.4 GB" (powers of 1000), three digits or more

}  // namespace shoal::train
