// SPDX-License-Identifier: Apache-2.0
#include "plan/compose.h"

#include <iterator>

#include "core/expects.h"

namespace shoal::plan {
namespace {

Rotating moved(Rotating index, std::int32_t base, std::int32_t scale) {
  index.base = base + scale * index.base;
  index.scale *= scale;
  return index;
}

Chunk moved(Chunk chunk, const Place& place) {
  if (chunk.buffer == Buffer::none) return chunk;
  expects(chunk.wrap == 0 || place.chunk_base == 0, "a set that wraps around starts at chunk 0 of the whole");
  if (chunk.buffer == Buffer::input) chunk.buffer = place.input;
  chunk.index = moved(chunk.index, place.chunk_base, place.width);
  if (place.width == 1) return chunk;
  if (chunk.size == 1) return window(chunk.buffer, chunk.index, place.width);
  chunk.size *= place.width;
  chunk.run *= place.width;
  chunk.pitch *= place.width;
  chunk.wrap *= place.width;
  return chunk;
}

}  // namespace

Lane embed(const Lane& part, const Place& place) {
  Lane lane{.channel = part.channel, .loops = {}};
  for (const Loop& loop : part.loops) {
    Loop copy{.iterations = loop.iterations, .steps = {}};
    for (Step step : loop.steps) {
      step.final = step.final && place.finishes;
      step.from = moved(step.from, place.rank_base, place.rank_scale);
      step.to = moved(step.to, place.rank_base, place.rank_scale);
      step.source = moved(step.source, place);
      step.target = moved(step.target, place);
      if (step.op != Op::copy || step.source != step.target) copy.steps.push_back(step);
    }
    if (!copy.steps.empty()) lane.loops.push_back(std::move(copy));
  }
  return lane;
}

void append(Lane& lane, Lane phase) {
  lane.loops.insert(lane.loops.end(), std::make_move_iterator(phase.loops.begin()), std::make_move_iterator(phase.loops.end()));
}

}  // namespace shoal::plan
