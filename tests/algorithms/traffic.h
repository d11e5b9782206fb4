// SPDX-License-Identifier: Apache-2.0
// What all ranks' plans put on the wire, counted by running them without data: links hold any number of messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

#include "algorithms/algorithms.h"
#include "plan/plan.h"

namespace shoal::algorithms {

struct Traffic {
  struct Message {
    std::int32_t from = 0, to = 0, chunks = 0;
    int hop = 0;    // 1 + the longest chain of messages that its sender had received
    int round = 0;  // in which it arrives where each lane sends and receives one message a round
  };
  std::vector<Message> messages;
  bool finished = false;  // all lanes ran to their ends, and every message was received

  int hops() const { return most(&Message::hop); }
  int rounds() const { return most(&Message::round); }
  std::int32_t sent_messages(std::int32_t rank) const {
    return static_cast<std::int32_t>(std::ranges::count(messages, rank, &Message::from));
  }
  std::int32_t sent(std::int32_t rank) const { return chunks(&Message::from, rank); }
  std::int32_t received(std::int32_t rank) const { return chunks(&Message::to, rank); }

 private:
  int most(int Message::*time) const {
    int most = 0;
    for (const Message& message : messages) most = std::max(most, message.*time);
    return most;
  }
  std::int32_t chunks(std::int32_t Message::*end, std::int32_t rank) const {
    std::int32_t n = 0;
    for (const Message& message : messages)
      if (message.*end == rank) n += message.chunks;
    return n;
  }
};

inline Traffic traffic_of(std::span<const plan::Plan> plans) {
  struct Program {
    std::int32_t rank = 0, channel = 0;
    std::vector<std::pair<plan::Step, std::int32_t>> steps;  // with their iteration
    std::size_t next = 0;
    int hop = 0, sent = 0, received = 0;  // the latest of each
  };
  std::vector<Program> programs;
  for (const plan::Plan& plan : plans)
    for (const plan::Lane& lane : plan.lanes) {
      Program program{.rank = plan.rank.value, .channel = lane.channel};
      plan::for_each_step(lane, [&](const plan::Step& step, std::int32_t i) { program.steps.emplace_back(step, i); });
      programs.push_back(program);
    }

  Traffic traffic;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::queue<std::size_t>> links;  // from, to, channel
  const auto run = [&](Program& program) {
    const auto& [step, i] = program.steps[program.next];
    if (plan::receives(step.op)) {
      auto& link = links[{step.from.at(i), program.rank, program.channel}];
      if (link.empty()) return false;
      Traffic::Message& message = traffic.messages[link.front()];
      link.pop();
      program.hop = std::max(program.hop, message.hop);
      message.round = program.received = std::max(message.round, program.received + 1);
    }
    if (plan::sends(step.op)) {
      const plan::Chunk& what = step.source.buffer == plan::Buffer::none ? step.target : step.source;
      program.sent = 1 + std::max(program.sent, program.received);
      links[{program.rank, step.to.at(i), program.channel}].push(traffic.messages.size());
      traffic.messages.push_back({program.rank, step.to.at(i), what.size, program.hop + 1, program.sent});
    }
    ++program.next;
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (Program& program : programs)
      while (program.next < program.steps.size() && run(program)) moved = true;
  }
  traffic.finished = std::ranges::all_of(programs, [](const Program& p) { return p.next == p.steps.size(); }) &&
                     std::ranges::all_of(links, [](const auto& link) { return link.second.empty(); });
  return traffic;
}

// Of a line of the table.
inline Traffic traffic_of(plan::Collective collective, std::string_view name, std::int32_t world, std::int32_t root = 0,
                          std::int32_t group = 0) {
  std::vector<plan::Plan> plans;
  for (std::int32_t r = 0; r < world; ++r)
    plans.push_back(find(collective, name)->build({.world = {world}, .rank = {r}, .root = {root}, .group = group}));
  return traffic_of(plans);
}

}  // namespace shoal::algorithms
