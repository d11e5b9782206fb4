// SPDX-License-Identifier: Apache-2.0
// What the reducing algorithms promise beyond being right (which the checker proves): rounds, messages and bytes a rank. A chunk
// is one byte here, so that bytes are chunks.
#include <bit>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "algorithms/patterns/butterfly.h"
#include "algorithms/patterns/double_tree.h"
#include "algorithms/patterns/elimination.h"
#include "algorithms/patterns/fold.h"
#include "algorithms/traffic.h"
#include "plan/counters.h"

using namespace shoal;
using namespace shoal::algorithms;
using plan::Collective;
using plan::Counters;

namespace {

constexpr std::int32_t kWorlds = 17;  // from 1 to here

std::int32_t log2_up(std::int32_t p) { return std::bit_width(static_cast<std::uint32_t>(p - 1)); }
std::int32_t log2_down(std::int32_t p) { return std::bit_width(static_cast<std::uint32_t>(p)) - 1; }
bool power_of_two(std::int32_t p) { return std::has_single_bit(static_cast<std::uint32_t>(p)); }

std::vector<plan::Plan> plans_of(Collective collective, std::string_view name, std::int32_t world, std::int32_t root = 0) {
  std::vector<plan::Plan> plans;
  for (std::int32_t r = 0; r < world; ++r)
    plans.push_back(find(collective, name)->build({.world = {world}, .rank = {r}, .root = {root}}));
  return plans;
}

Counters counted(const std::vector<plan::Plan>& plans) {
  Result<Counters> counters = plan::count(plans, {static_cast<std::size_t>(plans[0].chunks)});
  INFO(counters.status().text());
  REQUIRE(counters.is_ok());
  return *counters;
}

Counters counted(Collective collective, std::string_view name, std::int32_t world, std::int32_t root = 0) {
  return counted(plans_of(collective, name, world, root));
}

// What all ranks do alike.
struct Promise {
  std::string_view name;
  std::int32_t rounds, messages, sent, chunks;
};

void holds(Collective collective, const Promise& promise, std::int32_t world) {
  INFO(promise.name << " world " << world);
  const auto plans = plans_of(collective, promise.name, world);
  const Counters counters = counted(plans);
  CHECK(plans[0].chunks == promise.chunks);
  CHECK(counters.rounds.size() == static_cast<std::size_t>(promise.rounds));
  for (const Counters::Node& node : counters.nodes) {
    CHECK(node.messages_sent == static_cast<std::uint64_t>(promise.messages));
    CHECK(node.sent == static_cast<std::uint64_t>(promise.sent));
    CHECK(node.received == node.sent);
  }
}

}  // namespace

TEST_CASE("all-reduce: rounds, messages and bytes of the algorithms in which all ranks do the same") {
  for (std::int32_t p = 1; p <= kWorlds; ++p) {
    const std::int32_t others = p - 1, lg = log2_up(p);
    for (const Promise& promise :
         {Promise{"ring", 2 * others, 2 * others, 2 * others, p}, Promise{"two_rings", 2 * others, 4 * others, 4 * others, 2 * p},
          Promise{"whole_ring", others, others, others, 1}, Promise{"all_pairs", p > 1 ? 1 : 0, others, others, 1},
          Promise{"sequential", p > 1 ? p : 0, others, others, 1},
          Promise{"parameter_server_sharded", p > 1 ? 2 : 0, 2 * others, 2 * others, p},
          Promise{"pat", 2 * lg, 2 * lg, 2 * others, p}})
      holds(Collective::all_reduce, promise, p);
    if (!power_of_two(p) || p == 1) continue;
    holds(Collective::all_reduce, {"recursive_doubling", lg, lg, lg, 1}, p);
    for (const std::string_view name : {"halving_doubling", "halving_doubling_32", "swing"})
      holds(Collective::all_reduce, {name, 2 * lg, 2 * lg, 2 * others, p}, p);
  }
}

TEST_CASE("all-reduce: a fold costs two rounds, one vector up and one back") {
  for (std::int32_t p = 3; p <= kWorlds; ++p)
    for (const std::string_view name : {"halving_doubling", "swing"}) {
      if (power_of_two(p)) continue;
      INFO(name << " world " << p);
      const Fold fold({p});
      const Counters counters = counted(Collective::all_reduce, name, p);
      const auto acting = static_cast<std::uint64_t>(fold.acting());
      CHECK(counters.rounds.size() == static_cast<std::size_t>(2 * log2_down(p) + 2));
      for (std::int32_t r = 0; r < p; ++r) {
        const std::uint64_t own = fold.idles({r}) ? 0 : 2 * (acting - 1), pair = fold.in_pair({r}) ? acting : 0;
        CHECK(counters.nodes[static_cast<std::size_t>(r)].sent == own + pair);
        CHECK(counters.nodes[static_cast<std::size_t>(r)].received == own + pair);
      }
    }
}

TEST_CASE("all-reduce: 3-2 elimination's first half takes the rounds and bytes of the literature") {
  struct Half {
    std::int32_t world, rounds, quarters;  // most quarters of the vector that a rank receives
  };
  // Seven ranks would take four rounds if nobody began the second halving before all had ended the first.
  for (const Half& half : {Half{3, 2, 4}, Half{5, 3, 5}, Half{6, 3, 4}, Half{7, 3, 5}, Half{12, 4, 4}}) {
    INFO("world " << half.world);
    auto plans = plans_of(Collective::all_reduce, "halving_doubling_32", half.world);
    for (plan::Plan& plan : plans) {  // the first half ends with the last addition
      REQUIRE(plan.lanes[0].loops.size() == 1);
      auto& steps = plan.lanes[0].loops[0].steps;
      while (!plan::reduces(steps.back().op)) steps.pop_back();
    }
    const Counters counters = counted(plans);
    std::uint64_t most = 0;
    for (const Counters::Node& node : counters.nodes) most = std::max(most, node.received);
    CHECK(counters.rounds.size() == static_cast<std::size_t>(half.rounds));
    CHECK(4 * most == static_cast<std::uint64_t>(half.quarters * plans[0].chunks));
  }
}

TEST_CASE("3-2 elimination: every chunk is finished by one rank, and all ranks but p' are out on the way") {
  for (std::int32_t p = 2; p <= 64; ++p) {
    std::set<std::int32_t> owned;
    for (std::int32_t r = 0; r < p; ++r) {
      const std::vector<Halving> rounds = halvings(p, r);
      const Halving& last = rounds.back();
      if (last.role == Halving::Role::triple_out) continue;
      CHECK(last.finishes);
      const bool upper = last.role == Halving::Role::upper || last.role == Halving::Role::triple_upper;
      CHECK(owned.insert(last.first + (upper ? 1 : 0)).second);
    }
    CHECK(owned.size() == std::bit_floor(static_cast<std::uint32_t>(p)));
    CHECK(*owned.rbegin() == static_cast<std::int32_t>(owned.size()) - 1);
  }
}

TEST_CASE("all-reduce: one server receives and sends p-1 vectors, a worker one") {
  for (std::int32_t p = 2; p <= kWorlds; ++p) {
    INFO("world " << p);
    const Counters counters = counted(Collective::all_reduce, "parameter_server", p);
    CHECK(counters.rounds.size() == 2);
    for (std::size_t r = 0; r < counters.nodes.size(); ++r) {
      const std::uint64_t vectors = r == 0 ? static_cast<std::uint64_t>(p - 1) : 1;
      CHECK(counters.nodes[r].sent == vectors);
      CHECK(counters.nodes[r].received == vectors);
    }
  }
}

TEST_CASE("all-reduce: trees and chains go up and down") {
  for (std::int32_t p = 2; p <= kWorlds; ++p) {
    INFO("world " << p);
    const auto lg = static_cast<std::size_t>(log2_up(p));
    const Counters tree = counted(Collective::all_reduce, "tree", p);
    CHECK(tree.rounds.size() == 2 * static_cast<std::size_t>(log2_down(p)));  // depth: bits set in a rank
    CHECK(tree.nodes[0].sent == lg);
    CHECK(tree.total == static_cast<std::uint64_t>(2 * (p - 1)));
    const Counters chain = counted(Collective::all_reduce, "chain", p);
    CHECK(chain.rounds.size() == static_cast<std::size_t>(2 * (p - 1)));
    CHECK(chain.peak_node == (p == 2 ? 1 : 2));
    const Counters trees = counted(Collective::all_reduce, "double_tree", p);  // of two halves
    CHECK(trees.rounds.size() <= 2 * lg);
    CHECK(trees.total == static_cast<std::uint64_t>(4 * (p - 1)));
    CHECK(trees.peak_node <= 4);
  }
}

TEST_CASE("all-reduce: over shared memory nothing is sent but signals") {
  for (std::int32_t p = 2; p <= kWorlds; ++p) {
    INFO("world " << p);
    const auto others = static_cast<std::uint64_t>(p - 1);
    const Counters one = counted(Collective::all_reduce, "one_shot", p), two = counted(Collective::all_reduce, "two_shot", p);
    CHECK(one.total == 0);
    CHECK(two.total == 0);
    for (std::size_t r = 0; r < one.nodes.size(); ++r) {
      CHECK(one.nodes[r].signals_sent == others);
      CHECK(one.nodes[r].direct_read == others);  // whole vectors
      CHECK(two.nodes[r].signals_sent == 2 * others);
      CHECK(two.nodes[r].direct_read == 2 * others);  // chunks, of p
    }
  }
  CHECK_FALSE(find(Collective::all_reduce, "one_shot")->build({.world = {65}}).refusal.empty());
  CHECK_FALSE(find(Collective::all_reduce, "two_shot")->build({.world = {65}}).refusal.empty());
}

TEST_CASE("all-reduce: two levels send 1/g of the vector across, and unequal groups are refused") {
  for (const std::string_view name : {"hierarchical", "hierarchical_halving"})
    for (std::int32_t m : {2, 3, 4, 8})
      for (std::int32_t g = 2; g <= 5; ++g) {
        INFO(name << ": " << m << " groups of " << g);
        const Traffic traffic = traffic_of(Collective::all_reduce, name, m * g, 0, g);
        const std::int32_t shares = find(Collective::all_reduce, name)->build({.world = {m * g}, .group = g}).chunks / g;
        CHECK(traffic.finished);
        std::map<std::int32_t, std::int32_t> inside, across;
        for (const auto& message : traffic.messages)
          (message.from / g == message.to / g ? inside : across)[message.from] += message.chunks;
        for (std::int32_t r = 0; r < m * g; ++r) {
          CHECK(inside[r] == 2 * (g - 1) * shares);
          if (name == "hierarchical" || power_of_two(m)) CHECK(across[r] == 2 * (m - 1));  // chunks of n/(g m)
        }
        if (name == "hierarchical") CHECK(traffic.hops() == 2 * (g - 1) + 2 * (m - 1));
        if (name == "hierarchical_halving" && power_of_two(m)) CHECK(traffic.hops() == 2 * (g - 1) + 2 * log2_up(m));
      }
  for (const auto& [collective, name] : {std::pair{Collective::all_reduce, "hierarchical"},
                                         {Collective::all_reduce, "hierarchical_halving"},
                                         {Collective::reduce_scatter, "hierarchical"}})
    CHECK(find(collective, name)->build({.world = {10}, .group = 4}).refusal == "the ranks are not in equal groups");
}

TEST_CASE("reduce: rounds and what passes the root, for every root") {
  for (std::int32_t p = 2; p <= kWorlds; ++p)
    for (std::int32_t root = 0; root < p; ++root) {
      INFO("world " << p << " root " << root);
      const auto at = static_cast<std::size_t>(root);
      const auto others = static_cast<std::uint64_t>(p - 1);
      const auto lg = static_cast<std::size_t>(log2_up(p));
      const Counters binomial = counted(Collective::reduce, "binomial", p, root);
      CHECK(binomial.rounds.size() <= lg);  // fewer where the last subtrees are cut short
      if (power_of_two(p)) CHECK(binomial.rounds.size() == lg);
      CHECK(binomial.nodes[at].received == lg);
      const Counters chain = counted(Collective::reduce, "chain", p, root);
      CHECK(chain.rounds.size() == others);
      CHECK(chain.nodes[at].received == 1);
      const Counters linear = counted(Collective::reduce, "linear", p, root);
      CHECK(linear.rounds.size() == 1);
      CHECK(linear.nodes[at].received == others);
      const Counters trees = counted(Collective::reduce, "double_tree", p, root);  // of two halves
      CHECK(trees.rounds.size() <= static_cast<std::size_t>(log2_up(p - 1) + 1));
      CHECK(trees.nodes[at].received == 2);
      for (std::size_t r = 0; r < static_cast<std::size_t>(p); ++r) {
        for (const Counters* counters : {&binomial, &chain, &linear}) CHECK(counters->nodes[r].sent == (r == at ? 0 : 1));
        CHECK(trees.nodes[r].sent == (r == at ? 0 : 2));
      }
      const Counters halving = counted(Collective::reduce, "halving_gather", p, root);
      const std::uint64_t chunks = std::bit_floor(static_cast<std::uint32_t>(p));
      CHECK(halving.rounds.size() <= static_cast<std::size_t>(2 * log2_down(p) + 1));
      if (power_of_two(p)) CHECK(halving.rounds.size() == 2 * lg);
      CHECK(halving.nodes[at].sent == chunks - 1);
      for (const Counters::Node& node : halving.nodes) CHECK(node.sent <= 2 * (chunks - 1));
    }
}

TEST_CASE("reduce-scatter: rounds, and p-1 blocks sent a rank") {
  for (std::int32_t p = 1; p <= kWorlds; ++p) {
    const std::int32_t others = p - 1, lg = log2_up(p);
    holds(Collective::reduce_scatter, {"ring", others, others, others, 1}, p);
    holds(Collective::reduce_scatter, {"pat", lg, lg, others, 1}, p);
    holds(Collective::reduce_scatter, {"pairwise", p > 1 ? 1 : 0, others, others, 1}, p);
    if (power_of_two(p)) holds(Collective::reduce_scatter, {"halving", lg, lg, others, 1}, p);
  }
  for (std::int32_t p = 3; p <= kWorlds; ++p) {
    if (power_of_two(p)) continue;
    INFO("world " << p);  // folded: the vector up, one block back
    CHECK(counted(Collective::reduce_scatter, "halving", p).rounds.size() <= static_cast<std::size_t>(log2_down(p) + 2));
    CHECK(counted(Collective::reduce_scatter, "halving", p).nodes[0].sent == static_cast<std::uint64_t>(p));
    CHECK(counted(Collective::reduce_scatter, "halving", p).nodes[0].received == 1);
  }
}

TEST_CASE("reduce-scatter: two levels take g-1 and m-1 rounds and send m-1 blocks across") {
  for (std::int32_t m = 2; m <= 5; ++m)
    for (std::int32_t g = 2; g <= 5; ++g) {
      INFO(m << " groups of " << g);
      const Traffic traffic = traffic_of(Collective::reduce_scatter, "hierarchical", m * g, 0, g);
      CHECK(traffic.finished);
      CHECK(traffic.hops() == g - 1 + m - 1);
      for (std::int32_t r = 0; r < m * g; ++r) CHECK(traffic.sent(r) == (g - 1) * m + m - 1);
      for (const auto& message : traffic.messages) CHECK(message.chunks == (message.from / g == message.to / g ? m : 1));
    }
}

TEST_CASE("double tree: parents and children agree, no rank is deep, and none is inner in both trees") {
  for (std::int32_t p = 1; p <= 199; ++p) {
    std::vector<int> inner(static_cast<std::size_t>(p));
    for (std::int32_t tree = 0; tree < 2; ++tree)
      for (std::int32_t r = 0; r < p; ++r) {
        const TreePlace place = double_tree(tree, p, r);
        REQUIRE((place.parent < 0) == (r == double_tree_root(tree, p)));
        for (std::int32_t c = 0; c < place.children; ++c) REQUIRE(double_tree(tree, p, place.child[c]).parent == r);
        if (place.parent >= 0) {
          const TreePlace above = double_tree(tree, p, place.parent);
          REQUIRE((above.child[0] == r || above.child[1] == r));
        } else {
          REQUIRE(place.children <= 1);
        }
        std::int32_t depth = 0;
        for (std::int32_t at = r; at != double_tree_root(tree, p); at = double_tree(tree, p, at).parent) REQUIRE(++depth <= p);
        REQUIRE(depth <= log2_up(p));
        if (place.children > 0) ++inner[static_cast<std::size_t>(r)];
      }
    for (std::int32_t r = 0; r < p; ++r) {
      const bool both = inner[static_cast<std::size_t>(r)] == 2;
      REQUIRE(both == (p % 2 == 1 && p > 1 && r == 0));
    }
  }
  CHECK(double_tree(0, 8, 4).child[0] == 2);
  CHECK(double_tree(0, 8, 4).child[1] == 6);
  CHECK(double_tree(1, 8, 3).parent == 7);
}

TEST_CASE("Swing: distances, and every set of blocks that a rank can still reach is the window of its label") {
  const std::int32_t distances[] = {1, -1, 3, -5, 11, -21};
  for (std::int32_t k = 0; k < 6; ++k) CHECK(swing_distance(k) == distances[k]);
  for (std::int32_t p = 2; p <= 64; p *= 2) {
    const Butterfly swing(Butterfly::Kind::swing, p);
    // Before the last round a rank reaches itself and its partner, before the one before that also all that these reach, ...
    std::vector<std::set<std::int32_t>> reach(static_cast<std::size_t>(p));
    for (std::int32_t q = 0; q < p; ++q) reach[static_cast<std::size_t>(q)] = {q};
    for (std::int32_t k = swing.rounds() - 1; k >= 0; --k) {
      const auto later = reach;
      for (std::int32_t q = 0; q < p; ++q) {
        INFO("world " << p << " rank " << q << " round " << k);
        const std::int32_t partner = swing.partner(q, k);
        REQUIRE(swing.partner(partner, k) == q);
        auto& mine = reach[static_cast<std::size_t>(q)];
        mine.insert(later[static_cast<std::size_t>(partner)].begin(), later[static_cast<std::size_t>(partner)].end());
        std::set<std::int32_t> window;
        for (std::int32_t owner = 0; owner < p; ++owner)
          if (swing.first(owner, k) == swing.first(q, k)) window.insert(owner);
        REQUIRE(mine.size() == static_cast<std::size_t>(swing.size(k)));
        REQUIRE(mine == window);
      }
    }
  }
}

TEST_CASE("halving: rank q ends with the chunk whose number is q's bits in reverse") {
  const Butterfly halving(Butterfly::Kind::halving, 8);
  const std::int32_t reversed[] = {0, 4, 2, 6, 1, 5, 3, 7};
  for (std::int32_t q = 0; q < 8; ++q) CHECK(halving.label(q) == reversed[q]);
}

TEST_CASE("fold: those that act are a power of two, numbered in the order of ranks") {
  for (std::int32_t p = 1; p <= 70; ++p) {
    const Fold fold({p});
    std::int32_t acting = 0;
    for (std::int32_t r = 0; r < p; ++r) {
      if (fold.idles({r})) {
        REQUIRE(fold.number({r}) == fold.number(fold.partner({r})));
        continue;
      }
      REQUIRE(fold.number({r}) == acting);
      REQUIRE(fold.rank(acting++) == Rank{r});
    }
    REQUIRE(acting == fold.acting());
    REQUIRE(power_of_two(acting));
  }
}

TEST_CASE("reducing algorithms: no plan of 16384 ranks has more than some steps a bit of the world") {
  for (const Algorithm& algorithm : all()) {
    if (!plan::is_reduction(algorithm.collective)) continue;
    for (const std::int32_t world : {16384, 16383}) {
      std::size_t steps = 0;
      for (const plan::Lane& lane : algorithm.build({.world = {world}, .rank = {5}, .root = {1}}).lanes)
        for (const plan::Loop& loop : lane.loops) steps += loop.steps.size();
      INFO(plan::name_of(algorithm.collective) << " " << algorithm.name << " of " << world);
      CHECK(steps <= 5 * 14);
    }
  }
}
