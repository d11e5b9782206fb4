// SPDX-License-Identifier: Apache-2.0
// A whole gzip file in memory. A pure function; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace shoal::train {

// Throws Error (Exit::usage) if the file cannot be read, is damaged or truncated, or inflates to more than `limit` bytes.
std::vector<std::uint8_t> read_gzip(const std::filesystem::path& path, std::size_t limit);

}  // namespace shoal::train
