// SPDX-License-Identifier: Apache-2.0
#include "tools/plan/timeline.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "plan/simulator/cursor.h"

namespace shoal::plan_tool {

using namespace plan;

namespace {

class Run {
 public:
  Run(std::span<const Plan> plans, std::size_t most_boxes) : plans_(plans), most_boxes_(most_boxes) {}

  Result<Timeline> finish() {
    std::vector<Track> tracks;
    for (const Plan& plan : plans_)
      for (std::size_t l = 0; l < plan.lanes.size(); ++l)
        tracks.push_back({Cursor(plan.lanes[l]), plan.rank.value, static_cast<std::int32_t>(l)});
    for (bool moved = true; moved;) {
      moved = false;
      for (Track& track : tracks)
        while (!track.cursor.done() && step(track)) {
          moved = true;
          track.cursor.advance();
          if (timeline_.boxes.size() > most_boxes_)
            return fail(Code::invalid_usage,
                        "{} in a world of {}: more than {} steps are too many to draw; --world 8 or less is fine",
                        plans_[0].algorithm, plans_.size(), most_boxes_);
        }
    }
    for (const Track& track : tracks)
      if (!track.cursor.done())
        return fail(Code::internal_error, "{}: rank {} waits for ever in: {}", plans_[0].algorithm, track.rank,
                    describe(track.cursor.step(), track.cursor.iteration()));
    return std::move(timeline_);
  }

 private:
  struct Track {
    Cursor cursor;
    std::int32_t rank, lane;
    std::int32_t column = 0;  // of its next step, at least
  };
  using Data = std::vector<std::int32_t>;

  bool step(Track& track) {
    const Step& step = track.cursor.step();
    const std::int32_t i = track.cursor.iteration(), channel = track.cursor.lane().channel;
    Timeline::Box box{track.rank, track.lane, track.column, &step, i, {}};
    if (receives(step.op)) {
      std::deque<std::size_t>& in = links_[{step.from.at(i), track.rank, channel}];
      if (in.empty()) return false;
      const Timeline::Box& sender = timeline_.boxes[in.front()];
      box.column = std::max(box.column, sender.column + 1);
      box.data = sender.data;
      timeline_.arrows.push_back({in.front(), timeline_.boxes.size()});
      in.pop_front();
    } else if (carries_data(step.op)) {
      box.data = held(step.op == Op::copy_shared ? step.from.at(i) : track.rank, step.source, i);
    }
    if (carries_data(step.op) && step.target.buffer != Buffer::none) keep(track.rank, step.target, i, box.data);
    if (sends(step.op)) links_[{track.rank, step.to.at(i), channel}].push_back(timeline_.boxes.size());
    track.column = box.column + 1;
    timeline_.columns = std::max(timeline_.columns, track.column);
    timeline_.boxes.push_back(std::move(box));
    return true;
  }

  bool is_all_to_all() const {
    return plans_[0].collective == Collective::all_to_all || plans_[0].collective == Collective::all_to_all_v;
  }

  Data held(std::int32_t rank, const Chunk& chunk, std::int32_t i) const {
    Data data;
    for (std::int32_t t = 0; t < chunk.size; ++t) {
      const std::int32_t slot = chunk.at(t, i), world = static_cast<std::int32_t>(plans_.size());
      const auto found = kept_.find({rank, chunk.buffer, slot});
      if (found != kept_.end())
        data.push_back(found->second);
      else
        data.push_back(is_all_to_all() ? rank * world + slot / plans_[0].chunks : slot);
    }
    return data;
  }
  void keep(std::int32_t rank, const Chunk& chunk, std::int32_t i, const Data& data) {
    for (std::int32_t t = 0; t < chunk.size && t < static_cast<std::int32_t>(data.size()); ++t)
      kept_[{rank, chunk.buffer, chunk.at(t, i)}] = data[static_cast<std::size_t>(t)];
  }

  std::span<const Plan> plans_;
  std::size_t most_boxes_;
  Timeline timeline_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::deque<std::size_t>> links_;  // boxes that sent
  std::map<std::tuple<std::int32_t, Buffer, std::int32_t>, std::int32_t> kept_;
};

}  // namespace

Result<Timeline> timeline(std::span<const Plan> plans, std::size_t most_boxes) { return Run(plans, most_boxes).finish(); }

}  // namespace shoal::plan_tool
