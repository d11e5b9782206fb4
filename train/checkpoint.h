// SPDX-License-Identifier: Apache-2.0
// Checkpoints that any scheme and any world can load, whoever saved them: every rank writes the pieces that no rank before it
// holds, and reads from all files what overlaps its own. A checkpoint is a folder FOLDER/step-N, there only once complete, of
// files rank-R.shoal: 8 bytes of length (little-endian), as much JSON (a list of pieces: where they belong, how many values and
// moments, a hash of their bits), then the float32 values. A tied table is stored once.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "train/parallel/comm.h"
#include "train/piece.h"

namespace shoal::train {

// Collective. `step`: steps taken. Throws Error (Exit::usage) on every rank if one cannot write.
void save_checkpoint(const std::string& folder, std::size_t step, std::span<const Piece> pieces, const Communicator& comm);

// Collective. Fills values and moments; returns the steps taken. 0, nothing changed: there is none yet. Throws Error
// (Exit::usage): a file is damaged (named, with what is wrong), or belongs to another model (names the tensor and both shapes),
// or values are missing.
std::size_t load_newest_checkpoint(const std::string& folder, std::span<Piece> pieces, const Communicator& comm);
std::size_t load_newest_checkpoint(const std::string& folder, std::vector<Piece> pieces, const Communicator& comm);

// Fills what the file at `path` holds of the pieces, and counts it in `filled` (one counter a piece). Not collective; for tests
// too.
void load_file(const std::filesystem::path& path, std::span<Piece> pieces, std::span<std::size_t> filled);

}  // namespace shoal::train
