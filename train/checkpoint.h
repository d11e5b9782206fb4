// SPDX-License-Identifier: Apache-2.0
// Checkpoints that any scheme and any world can load, whoever saved them: every rank writes the pieces that no rank before it
// holds, and reads from all files what overlaps its own. A checkpoint is a folder FOLDER/step-N, there only once complete, of
// files rank-R.shoal (checkpoint_file.h). A tied table is stored once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/parallel/comm.h"
#include "train/piece.h"

namespace shoal::train {

// Collective. `step`: steps taken. Throws Error (Exit::usage) on every rank if one cannot write.
void save_checkpoint(const std::string& folder, std::size_t step, std::span<const Piece> pieces, const Communicator& comm);

// Collective. Fills values and moments; returns the steps taken. 0, nothing changed: there is none yet. Throws Error
// (Exit::usage): a file is damaged (named, with what is wrong), or belongs to another model or optimiser (names the tensor and
// what differs), or values are missing.
std::size_t load_newest_checkpoint(const std::string& folder, std::span<Piece> pieces, const Communicator& comm);
std::size_t load_newest_checkpoint(const std::string& folder, std::vector<Piece> pieces, const Communicator& comm);

}  // namespace shoal::train
