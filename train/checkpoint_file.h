// SPDX-License-Identifier: Apache-2.0
// One file of a checkpoint: "SHOALCK1", 8 bytes of the header's length, 8 of its hash (little-endian), the header in JSON (a list
// of pieces: where they belong, how many values and moments, a hash of their bits), then the float32 values. No byte can change
// unnoticed, and no number is believed that the file is too short for. All functions throw Error (Exit::usage); any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/piece.h"

namespace shoal::train {

void write_file(const std::filesystem::path& path, std::span<const Piece> pieces);

// Which values of a piece have been read, one flag each; one vector a piece.
using Filled = std::vector<std::vector<bool>>;
Filled nothing_filled(std::span<const Piece> pieces);

// Fills what the file holds of the pieces, however it is cut. A damaged header changes nothing.
void load_file(const std::filesystem::path& path, std::span<Piece> pieces, Filled& filled);
// ... from `size` bytes; `name`: for texts.
void load_stream(std::istream& file, std::uintmax_t size, const std::string& name, std::span<Piece> pieces, Filled& filled);

// Of the header's bytes.
std::uint64_t header_hash(std::string_view header);
inline constexpr std::string_view kCheckpointMagic = "SHOALCK1";

}  // namespace shoal::train
