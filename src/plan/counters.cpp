// SPDX-License-Identifier: Apache-2.0
#include "plan/counters.h"

#include <algorithm>

#include "plan/simulator/cursor.h"
#include "plan/simulator/lengths.h"
#include "plan/simulator/link_table.h"

namespace shoal::plan {
namespace {

constexpr std::size_t kMaxRoundTable = std::size_t{1} << 26;  // entries: ranks x rounds

// Runs the plans over links without bounds; a lane runs until it waits for a message that has not been sent yet.
class Run {
 public:
  Run(std::span<const Plan> plans, std::uint64_t elements, std::uint64_t element_bytes)
      : plans_(plans), elements_(elements), width_(element_bytes) {
    counters_.nodes.resize(plans.size());
  }

  Result<Counters> finish() {
    for (std::size_t r = 0; r < plans_.size(); ++r)
      for (const Lane& lane : plans_[r].lanes) tracks_.push_back({Cursor(lane), static_cast<std::int32_t>(r), 0});
    for (std::size_t t = tracks_.size(); t-- > 0;) ready_.push_back(static_cast<std::int32_t>(t));
    while (!ready_.empty() && too_many_.is_ok()) {
      const std::int32_t t = ready_.back();
      ready_.pop_back();
      advance(t);
    }
    if (!too_many_.is_ok()) return too_many_;
    for (const Track& track : tracks_)
      if (!track.cursor.done())
        return fail(Code::internal_error, "{} in a world of {}: rank {} waits for ever in: {}", plans_[0].algorithm,
                    plans_.size(), track.rank, describe(track.cursor.step(), track.cursor.iteration()));
    sum_up();
    return std::move(counters_);
  }

 private:
  struct Track {
    Cursor cursor;
    std::int32_t rank;
    std::int32_t round;  // latest of what was received
  };
  struct Message {
    std::int32_t round;
    std::int32_t next;
  };
  struct Link {
    std::int32_t first = -1, last = -1;  // messages under way
    std::int32_t waiting = -1;           // track
  };
  struct Load {
    std::uint64_t sent = 0, received = 0;
  };

  void advance(std::int32_t t) {
    Track& track = tracks_[static_cast<std::size_t>(t)];
    while (!track.cursor.done() && too_many_.is_ok()) {
      if (!execute(track, t)) return;
      track.cursor.advance();
    }
  }

  bool execute(Track& track, std::int32_t t) {
    const Step& step = track.cursor.step();
    const Plan& plan = plans_[static_cast<std::size_t>(track.rank)];
    const std::int32_t i = track.cursor.iteration();
    Counters::Node& node = counters_.nodes[static_cast<std::size_t>(track.rank)];
    const std::uint64_t bytes = carries_data(step.op) ? width_ * Lengths(elements_, plan.chunks).of(operand(step), i) : 0;
    if (bytes == 0 && carries_data(step.op)) return true;
    const std::int32_t channel = track.cursor.lane().channel;

    if (receives(step.op)) {
      Link& in = link(step.from.at(i), track.rank, channel);
      if (in.first < 0) {
        in.waiting = t;
        return false;
      }
      const Message message = messages_[static_cast<std::size_t>(in.first)];
      free_.push_back(in.first);
      in.first = message.next;
      track.round = std::max(track.round, message.round);
      if (bytes != 0) {
        ++node.messages_received;
        node.received += bytes;
        if (Load* load = load_of(message.round, track.rank)) load->received += bytes;
      }
    }
    if (reduces(step.op)) node.reduced += step.op == Op::reduce_shared ? bytes * (plans_.size() - 1) : bytes;
    if (step.op == Op::reduce_shared) node.direct_read += bytes * (plans_.size() - 1);
    if (step.op == Op::copy_shared && step.from.at(i) != track.rank) node.direct_read += bytes;
    if (sends(step.op)) {
      const bool data = bytes != 0;
      const std::int32_t round = track.round + (data ? 1 : 0);
      if (data) {
        ++node.messages_sent;
        node.sent += bytes;
        if (Load* load = load_of(round, track.rank)) {
          load->sent += bytes;
          ++counters_.rounds[static_cast<std::size_t>(round - 1)].messages;
        }
      } else {
        ++node.signals_sent;
      }
      put(link(track.rank, step.to.at(i), channel), round);
    }
    return true;
  }

  Link& link(std::int32_t from, std::int32_t to, std::int32_t channel) {
    bool added = false;
    const std::int32_t number = table_.find_or_add(from, to, channel, added);
    if (added) links_.emplace_back();
    return links_[static_cast<std::size_t>(number)];
  }

  void put(Link& out, std::int32_t round) {
    std::int32_t number = 0;
    if (free_.empty()) {
      number = static_cast<std::int32_t>(messages_.size());
      messages_.emplace_back();
    } else {
      number = free_.back();
      free_.pop_back();
    }
    messages_[static_cast<std::size_t>(number)] = {round, -1};
    if (out.first < 0)
      out.first = number;
    else
      messages_[static_cast<std::size_t>(out.last)].next = number;
    out.last = number;
    if (out.waiting >= 0) {
      ready_.push_back(out.waiting);
      out.waiting = -1;
    }
  }

  Load* load_of(std::int32_t round, std::int32_t rank) {
    const std::size_t before = static_cast<std::size_t>(round - 1) * plans_.size();
    if (before + plans_.size() > kMaxRoundTable) {
      too_many_ = fail(Code::invalid_usage, "{} in a world of {}: more than {} rounds, too many to count bytes a round",
                       plans_[0].algorithm, plans_.size(), round - 1);
      return nullptr;
    }
    if (loads_.size() < before + plans_.size()) {
      loads_.resize(before + plans_.size());
      counters_.rounds.resize(static_cast<std::size_t>(round));
    }
    return &loads_[before + static_cast<std::size_t>(rank)];
  }

  void sum_up() {
    for (std::size_t k = 0; k < counters_.rounds.size(); ++k) {
      Counters::Round& round = counters_.rounds[k];
      for (std::size_t r = 0; r < plans_.size(); ++r) {
        const Load& load = loads_[k * plans_.size() + r];
        round.peak_node = std::max({round.peak_node, load.sent, load.received});
        round.total += load.sent;
      }
    }
    for (const Counters::Node& node : counters_.nodes) {
      counters_.messages += node.messages_sent;
      counters_.signals += node.signals_sent;
      counters_.peak_node = std::max({counters_.peak_node, node.sent, node.received});
      counters_.total += node.sent;
    }
    for (const Plan& plan : plans_) {
      const Lengths lengths(elements_, plan.chunks);
      const auto slots = [&](std::int32_t n) {
        return n == 0 ? 0 : width_ * lengths.of(window(Buffer::scratch, fixed(0), n), 0);
      };
      counters_.scratch = std::max(counters_.scratch, slots(plan.scratch));
      counters_.shared = std::max(counters_.shared, 2 * slots(plan.shared));
    }
  }

  std::span<const Plan> plans_;
  std::uint64_t elements_, width_;
  Counters counters_;
  std::vector<Track> tracks_;
  std::vector<std::int32_t> ready_;  // tracks that may have something to do
  LinkTable table_;
  std::vector<Link> links_;
  std::vector<Message> messages_;
  std::vector<std::int32_t> free_;
  std::vector<Load> loads_;  // [round][rank]
  Status too_many_;
};

}  // namespace

std::uint64_t Counters::peak_node_in_a_round() const {
  std::uint64_t most = 0;
  for (const Round& round : rounds) most = std::max(most, round.peak_node);
  return most;
}

std::uint64_t Counters::total_in_a_round() const {
  std::uint64_t most = 0;
  for (const Round& round : rounds) most = std::max(most, round.total);
  return most;
}

Result<Counters> count(std::span<const Plan> plans, Bytes bytes, std::size_t element_bytes) {
  if (plans.empty() || static_cast<std::int32_t>(plans.size()) >= LinkTable::kMaxRanks)
    return fail(Code::invalid_argument, "{} plans: 1 to {} can be counted", plans.size(), LinkTable::kMaxRanks - 1);
  if (element_bytes == 0 || bytes.value % element_bytes != 0)
    return fail(Code::invalid_argument, "{} bytes are not whole elements of {} bytes", bytes.value, element_bytes);
  for (const Plan& plan : plans)
    if (!plan.refusal.empty())
      return fail(Code::invalid_usage, "{} has no plan for rank {} of {}: {}", plan.algorithm, plan.rank.value, plans.size(),
                  plan.refusal);
  return Run(plans, bytes.value / element_bytes, element_bytes).finish();
}

}  // namespace shoal::plan
