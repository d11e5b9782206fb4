// SPDX-License-Identifier: Apache-2.0
// How long a call may be for boards (engine/boards.h) to be the quickest way, by measurement: on 2 processors, with as many ranks
// and with 2 to 4 times as many, each size beside all other algorithms in turn. The cost model, which knows messages, does not
// tell: what boards save is waiting.
#pragma once

#include <optional>

#include "comm/settings.h"
#include "comm/situation.h"
#include "core/types.h"
#include "plan/plan.h"

namespace shoal::comm {

// Bytes that a rank shows at most; up to there the shortest that can, wins. Nothing for a plan that does not run over boards.
std::optional<Bytes> board_limit(const plan::Plan& plan, const Situation& situation);

// Whether ranks read each other's memory (engine/pulled.h).
struct Pulling {
  Bytes from;          // of a block
  bool always = true;  // from there on; else only while it is the quicker way
};
// Nothing: never.
std::optional<Pulling> pull_limit(plan::Collective collective, const Situation& situation, const Settings& settings);

// Bytes that a rank shows in a call of so many bytes of the vector, or of each block.
Bytes shown_bytes(const plan::Plan& plan, Bytes length);

}  // namespace shoal::comm
