// SPDX-License-Identifier: Apache-2.0
// What the moving algorithms promise beyond being right (which the checker proves): rounds, messages and chunks sent a rank.
#include <bit>
#include <catch2/catch.hpp>
#include <set>

#include "algorithms/patterns/binomial.h"
#include "algorithms/patterns/groups.h"
#include "algorithms/patterns/pat.h"
#include "algorithms/traffic.h"

using namespace shoal;
using namespace shoal::algorithms;
using plan::Collective;

namespace {

constexpr std::int32_t kWorlds = 17;  // from 1 to here

std::int32_t log2_up(std::int32_t p) { return std::bit_width(static_cast<std::uint32_t>(p - 1)); }
bool power_of_two(std::int32_t p) { return std::has_single_bit(static_cast<std::uint32_t>(p)); }

// Most and fewest chunks that ranks send.
std::pair<std::int32_t, std::int32_t> sent_range(const Traffic& traffic, std::int32_t world) {
  std::pair<std::int32_t, std::int32_t> range{traffic.sent(0), traffic.sent(0)};
  for (std::int32_t r = 1; r < world; ++r)
    range = {std::min(range.first, traffic.sent(r)), std::max(range.second, traffic.sent(r))};
  return range;
}
using Range = std::pair<std::int32_t, std::int32_t>;

// How far blocks travel around the circle of ranks, for one rank's messages.
std::int32_t chunk_hops(std::string_view name, std::int32_t world) {
  std::int32_t sum = 0;
  for (const auto& message : traffic_of(Collective::all_gather, name, world).messages)
    if (message.from == 0) sum += message.chunks * std::min(message.to, world - message.to);
  return sum;
}

std::size_t steps_of(Collective collective, std::string_view name, std::int32_t world) {
  std::size_t steps = 0;
  for (const plan::Lane& lane : find(collective, name)->build({.world = {world}, .rank = {1}, .root = {0}}).lanes)
    for (const plan::Loop& loop : lane.loops) steps += loop.steps.size();
  return steps;
}

}  // namespace

TEST_CASE("binomial tree: children's subtrees and the label itself make up the subtree, for every world and root") {
  for (std::int32_t p = 1; p <= 33; ++p)
    for (std::int32_t root = 0; root < p; ++root) {
      const Binomial tree({p}, {root});
      REQUIRE(tree.label({root}) == 0);
      REQUIRE(tree.subtree(0) == p);
      for (std::int32_t v = 0; v < p; ++v) {
        REQUIRE(tree.label(tree.rank(v)) == v);
        std::int32_t expected = v + 1;
        for (const std::int32_t child : tree.children(v)) {
          REQUIRE(child == expected);  // windows follow on each other
          REQUIRE(tree.parent(child) == v);
          expected += tree.subtree(child);
        }
        REQUIRE(expected == v + tree.subtree(v));
      }
    }
}

TEST_CASE("PAT: over all rounds a rank sends p-1 blocks, each to the rank a bit above it in the block's tree") {
  for (std::int32_t p = 1; p <= 33; ++p) {
    std::set<std::int32_t> offsets;  // at which some rank receives
    for (std::int32_t bit = pat_top_bit({p}); bit > 0; bit /= 2) {
      const plan::Chunk set = pat_set(plan::Buffer::output, {p}, {0}, bit);
      for (std::int32_t t = 0; t < set.size; ++t) {
        const std::int32_t offset = (p - set.at(t, 0)) % p;  // of rank 0 in that block's tree
        CHECK(offset % (2 * bit) == 0);
        CHECK(offset + bit < p);
        CHECK(offsets.insert(offset + bit).second);
      }
    }
    CHECK(offsets.size() == static_cast<std::size_t>(p - 1));
  }
}

TEST_CASE("all-gather: rounds, and p-1 blocks sent a rank") {
  for (std::int32_t p = 1; p <= kWorlds; ++p) {
    INFO("world " << p);
    struct Promise {
      std::string_view name;
      int rounds, hops;
      std::int32_t messages;
    };
    for (const Promise& promise :
         {Promise{"ring", p - 1, p - 1, p - 1}, Promise{"two_rings", p / 2, p / 2, p - 1},
          Promise{"bruck", log2_up(p), log2_up(p), log2_up(p)}, Promise{"pat", log2_up(p), log2_up(p), log2_up(p)},
          Promise{"linear", p - 1, p == 1 ? 0 : 1, p - 1}}) {
      INFO(promise.name);
      const Traffic traffic = traffic_of(Collective::all_gather, promise.name, p);
      CHECK(traffic.finished);
      CHECK(traffic.rounds() == promise.rounds);
      CHECK(traffic.hops() == promise.hops);
      for (std::int32_t r = 0; r < p; ++r) {
        CHECK(traffic.sent_messages(r) == promise.messages);
        CHECK(traffic.sent(r) == p - 1);
        CHECK(traffic.received(r) == p - 1);
      }
    }
  }
}

TEST_CASE("all-gather: recursive doubling takes log2 p rounds, and two more where it folds") {
  for (std::int32_t p = 1; p <= kWorlds; ++p) {
    INFO("world " << p);
    const Traffic traffic = traffic_of(Collective::all_gather, "recursive_doubling", p);
    const int rounds = std::bit_width(static_cast<std::uint32_t>(p)) - 1;
    CHECK(traffic.finished);
    CHECK(traffic.rounds() == rounds + (power_of_two(p) ? 0 : 2));
    for (std::int32_t r = 0; r < p; ++r) CHECK(traffic.received(r) == p - 1);
    if (power_of_two(p)) CHECK(sent_range(traffic, p) == Range{p - 1, p - 1});
  }
}

TEST_CASE("all-gather: two rings use both neighbours, as equally as the world allows") {
  for (std::int32_t p = 3; p <= kWorlds; ++p) {
    std::int32_t up = 0, down = 0;
    for (const auto& message : traffic_of(Collective::all_gather, "two_rings", p).messages)
      if (message.from == 0) (message.to == 1 ? up : down) += message.chunks;
    CHECK(up == p / 2);
    CHECK(down == (p - 1) / 2);
  }
}

TEST_CASE("all-gather: PAT's blocks travel p/2 log2 p, Bruck's (p^2-1)/3") {
  CHECK(chunk_hops("pat", 16) == 32);
  CHECK(chunk_hops("bruck", 16) == 85);
  CHECK(chunk_hops("pat", 64) == 192);
  CHECK(chunk_hops("bruck", 64) == 1365);
}

TEST_CASE("all-to-all: pairwise and linear send p-1 messages of a block, linear eight at once") {
  for (std::int32_t p = 1; p <= 33; ++p)
    for (const std::string_view name : {"pairwise", "linear"}) {
      INFO(name << " world " << p);
      const Traffic traffic = traffic_of(Collective::all_to_all, name, p);
      CHECK(traffic.finished);
      CHECK(traffic.rounds() == p - 1);
      CHECK(traffic.hops() == (name == "linear" ? (p - 1 + 7) / 8 : p - 1));
      CHECK(sent_range(traffic, p) == Range{p - 1, p - 1});
      for (std::int32_t r = 0; r < p; ++r) CHECK(traffic.sent_messages(r) == p - 1);
    }
}

TEST_CASE("all-to-all: Bruck sends a block once for each digit of its distance, p/2 blocks a round at powers of two") {
  for (std::int32_t p = 1; p <= 33; ++p) {
    INFO("world " << p);
    const Traffic traffic = traffic_of(Collective::all_to_all, "bruck", p);
    std::int32_t digits = 0;
    for (std::int32_t i = 0; i < p; ++i) digits += std::popcount(static_cast<std::uint32_t>(i));
    CHECK(traffic.finished);
    CHECK(traffic.rounds() == log2_up(p));
    CHECK(sent_range(traffic, p) == Range{digits, digits});
    for (std::int32_t r = 0; r < p; ++r) CHECK(traffic.sent_messages(r) == log2_up(p));
    if (power_of_two(p))
      for (const auto& message : traffic.messages) CHECK(message.chunks == p / 2);
  }
}

TEST_CASE("all-to-all: in two levels a rank sends g-1 messages inside its host and m-1 of a host's blocks to others") {
  for (std::int32_t m = 2; m <= 5; ++m)
    for (std::int32_t g = 2; g <= 5; ++g) {
      INFO(m << " hosts of " << g);
      const Traffic traffic = traffic_of(Collective::all_to_all, "hierarchical", m * g, 0, g);
      CHECK(traffic.finished);
      CHECK(traffic.rounds() == g - 1 + m - 1);
      for (std::int32_t r = 0; r < m * g; ++r) CHECK(traffic.sent_messages(r) == g - 1 + m - 1);
      for (const auto& message : traffic.messages) {
        const bool inside = message.from / g == message.to / g;
        CHECK(message.chunks == (inside ? m : g));
        if (!inside) CHECK(message.from % g == message.to % g);
      }
    }
}

TEST_CASE("all-to-all: without hosts the two levels are balanced, and unequal hosts are refused") {
  CHECK(balanced_group({1}) == 1);
  CHECK(balanced_group({7}) == 1);
  CHECK(balanced_group({12}) == 3);
  CHECK(balanced_group({16}) == 4);
  CHECK(balanced_group({24}) == 4);
  CHECK(traffic_of(Collective::all_to_all, "hierarchical", 16).sent_messages(0) == 6);
  CHECK(traffic_of(Collective::all_to_all, "hierarchical", 7).sent_messages(0) == 6);
  const auto plan = find(Collective::all_to_all, "hierarchical")->build({.world = {10}, .group = 4});
  CHECK(plan.refusal == "the ranks are not in equal groups");
}

TEST_CASE("broadcast: rounds and what the root sends, for every root") {
  for (std::int32_t p = 1; p <= kWorlds; ++p)
    for (std::int32_t root = 0; root < p; ++root) {
      INFO("world " << p << " root " << root);
      const Traffic binomial = traffic_of(Collective::broadcast, "binomial", p, root);
      CHECK(binomial.finished);
      CHECK(binomial.rounds() == log2_up(p));
      CHECK(binomial.sent(root) == log2_up(p));
      const Traffic linear = traffic_of(Collective::broadcast, "linear", p, root);
      CHECK(linear.finished);
      CHECK(linear.hops() == (p == 1 ? 0 : 1));
      CHECK(linear.sent(root) == p - 1);
      const Traffic chain = traffic_of(Collective::broadcast, "chain", p, root);
      CHECK(chain.finished);
      CHECK(chain.hops() == p - 1);
      CHECK(sent_range(chain, p).second == (p == 1 ? 0 : 1));
      for (const Traffic* traffic : {&binomial, &linear, &chain})
        for (std::int32_t r = 0; r < p; ++r) CHECK(traffic->received(r) == (r == root ? 0 : 1));
    }
}

TEST_CASE("broadcast: scatter and all-gather send 2(p-1) of p chunks at most, and no chunk twice to a rank") {
  for (std::int32_t p = 1; p <= kWorlds; ++p)
    for (std::int32_t root = 0; root < p; ++root) {
      INFO("world " << p << " root " << root);
      const Traffic traffic = traffic_of(Collective::broadcast, "scatter_all_gather", p, root);
      CHECK(traffic.finished);
      CHECK(traffic.rounds() <= log2_up(p) + std::max(p - 1, 0));
      CHECK(traffic.sent(root) == (p == 1 ? 0 : 2 * (p - 1)));
      CHECK(sent_range(traffic, p).second <= 2 * (p - 1));
      for (std::int32_t r = 0; r < p; ++r) CHECK(traffic.received(r) == (r == root ? 0 : p));
    }
}

TEST_CASE("broadcast: the double tree feeds each rank both halves, and no rank but the root sends in both trees") {
  for (std::int32_t p = 2; p <= 33; ++p)
    for (std::int32_t root : {0, 1, p - 1}) {
      INFO("world " << p << " root " << root);
      const Traffic traffic = traffic_of(Collective::broadcast, "double_tree", p, root);
      CHECK(traffic.finished);
      CHECK(traffic.hops() <= log2_up(p));
      CHECK(traffic.sent(root) == 2);
      for (std::int32_t r = 0; r < p; ++r) {
        CHECK(traffic.received(r) == (r == root ? 0 : 2));
        CHECK(traffic.sent(r) <= 2);  // halves: n bytes
        if (r == root) continue;
        bool sends[2] = {};
        const auto plan = find(Collective::broadcast, "double_tree")->build({.world = {p}, .rank = {r}, .root = {root}});
        REQUIRE(plan.lanes.size() == 2);
        for (std::size_t tree : {0u, 1u})
          plan::for_each_step(plan.lanes[tree],
                              [&](const plan::Step& step, std::int32_t) { sends[tree] |= plan::sends(step.op); });
        CHECK_FALSE((sends[0] && sends[1]));
      }
    }
}

TEST_CASE("gather and scatter: rounds and what passes the root, for every root") {
  for (std::int32_t p = 1; p <= kWorlds; ++p)
    for (std::int32_t root = 0; root < p; ++root) {
      INFO("world " << p << " root " << root);
      const auto at_root = [&](const Traffic& traffic, Collective c) {
        return c == Collective::gather ? traffic.received(root) : traffic.sent(root);
      };
      for (const Collective c : {Collective::gather, Collective::scatter}) {
        const Traffic linear = traffic_of(c, "linear", p, root);
        CHECK(linear.finished);
        CHECK(linear.hops() == (p == 1 ? 0 : 1));
        CHECK(linear.messages.size() == static_cast<std::size_t>(p - 1));
        CHECK(at_root(linear, c) == p - 1);
        const Traffic binomial = traffic_of(c, "binomial", p, root);
        CHECK(binomial.finished);
        CHECK(binomial.rounds() == log2_up(p));
        CHECK(binomial.messages.size() == static_cast<std::size_t>(p - 1));
        CHECK(at_root(binomial, c) == p - 1);
      }
    }
}

TEST_CASE("gather and scatter: scratch is the blocks under a rank that forwards, and nothing elsewhere") {
  for (const Collective c : {Collective::gather, Collective::scatter}) {
    const auto slots = [&](std::int32_t rank) {
      return find(c, "binomial")->build({.world = {8}, .rank = {rank}, .root = {3}}).scratch;
    };
    CHECK(slots(3) == 0);            // the root
    CHECK(slots((3 + 4) % 8) == 4);  // labels 4 to 7
    CHECK(slots((3 + 6) % 8) == 2);
    CHECK(slots((3 + 7) % 8) == 0);  // a leaf
  }
}

TEST_CASE("barrier: dissemination takes ceil(log2 p) rounds, the tree twice as many but only 2(p-1) signals") {
  for (std::int32_t p = 1; p <= kWorlds; ++p) {
    INFO("world " << p);
    const Traffic dissemination = traffic_of(Collective::barrier, "dissemination", p);
    CHECK(dissemination.finished);
    CHECK(dissemination.rounds() == log2_up(p));
    CHECK(dissemination.messages.size() == static_cast<std::size_t>(p * log2_up(p)));
    const Traffic tree = traffic_of(Collective::barrier, "tree", p);
    CHECK(tree.finished);
    CHECK(tree.rounds() <= 2 * log2_up(p));
    if (power_of_two(p)) CHECK(tree.rounds() == 2 * log2_up(p));
    CHECK(tree.messages.size() == static_cast<std::size_t>(2 * (p - 1)));
  }
}

TEST_CASE("moving algorithms: a plan has as many steps in a world of 16384 as its pattern needs") {
  for (const auto& [collective, name] : {std::pair{Collective::all_gather, "ring"},
                                         {Collective::all_gather, "two_rings"},
                                         {Collective::all_gather, "linear"},
                                         {Collective::all_to_all, "pairwise"},
                                         {Collective::all_to_all, "linear"},
                                         {Collective::broadcast, "chain"},
                                         {Collective::broadcast, "linear"},
                                         {Collective::gather, "linear"},
                                         {Collective::scatter, "linear"}}) {
    INFO(name);
    CHECK(steps_of(collective, name, 16384) == steps_of(collective, name, 16));
  }
  CHECK(steps_of(Collective::all_gather, "pat", 16384) == 1 + 2 * 14);
  CHECK(steps_of(Collective::all_gather, "bruck", 16384) == 1 + 2 * 14);
  CHECK(steps_of(Collective::all_to_all, "bruck", 16384) == 1 + 2 * 14);
  CHECK(steps_of(Collective::barrier, "dissemination", 16384) == 2 * 14);
}
