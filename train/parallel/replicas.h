// SPDX-License-Identifier: Apache-2.0
// Whether what several ranks hold of a model is the same on all of them.
#pragma once

#include <span>

#include "train/parallel/comm.h"
#include "train/piece.h"

namespace shoal::train {

// Collective. Whether ranks that hold the same rectangle hold the same bits.
bool replicas_agree(const Communicator& comm, std::span<const Piece> pieces);

}  // namespace shoal::train
