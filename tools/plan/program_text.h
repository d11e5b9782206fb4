// SPDX-License-Identifier: Apache-2.0
// A plan as text, with loops as loops and moving indices as formulas of i. Pure functions.
#pragma once

#include <string>

#include "plan/plan.h"

namespace shoal::plan_tool {

// "3", or in a loop "(2 - i) mod 4".
std::string text_of(const plan::Rotating& index, bool in_loop);
// "input[(2 - i) mod 4]"
std::string text_of(const plan::Chunk& chunk, bool in_loop);
// "recv_reduce_send from 3 to 1: input[(2 - i) mod 4]"
std::string text_of(const plan::Step& step, bool in_loop);
// "for i in 0..2", and "" for what runs once.
std::string head_of(const plan::Loop& loop);

// What is true of the plans of all ranks: "4 chunks, 2 credits, by reference".
std::string properties(const plan::Plan& plan);
// The program of one rank, indented, one step a line.
std::string program_text(const plan::Plan& plan);

}  // namespace shoal::plan_tool
