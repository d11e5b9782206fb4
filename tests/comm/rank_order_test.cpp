// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_order.h"

#include <catch2/catch.hpp>

#include "comm/selection.h"

namespace shoal::comm {
namespace {

// A letter a rank: its host.
std::vector<link::PeerIdentity> on(std::string_view hosts) {
  std::vector<link::PeerIdentity> peers;
  for (const char host : hosts)
    peers.push_back({.rank = {static_cast<std::int32_t>(peers.size())},
                     .host = std::string(1, host),
                     .host_id = std::string(1, host) + "/x"});
  return peers;
}

std::vector<std::int32_t> numbers(const RankOrder& order) {
  std::vector<std::int32_t> all;
  for (const Rank each : order.ranks) all.push_back(each.value);
  return all;
}

using Numbers = std::vector<std::int32_t>;

// Two sites, a c and b d, whose hosts are near each other.
Calibration two_sites() {
  Calibration calibration;
  for (const char from : {'a', 'b', 'c', 'd'})
    for (const char to : {'a', 'b', 'c', 'd'})
      if (from != to) calibration.paths_Bps[{std::string(1, from), std::string(1, to)}] = (from - to) % 2 == 0 ? 1e9 : 1e7;
  return calibration;
}

TEST_CASE("rank order: ranks of a host stand beside each other; where they do, nothing is changed") {
  CHECK(numbers(rank_order(on("aabb"), nullptr)).empty());
  CHECK(numbers(rank_order(on("aaaa"), nullptr)).empty());
  CHECK(numbers(rank_order(on("abab"), nullptr)) == Numbers{0, 2, 1, 3});
  CHECK(numbers(rank_order(on("abcabca"), nullptr)) == Numbers{0, 3, 6, 1, 4, 2, 5});
}

TEST_CASE("rank order: hosts so that the thin way is taken as rarely as possible; the slowest ways are known") {
  const Calibration calibration = two_sites();
  const RankOrder order = rank_order(on("abcd"), &calibration);
  const Numbers found = numbers(order);
  REQUIRE(found.size() == 4);
  int crossings = 0;
  for (std::size_t i = 0; i < 4; ++i) crossings += (found[i] - found[(i + 1) % 4]) % 2 != 0 ? 1 : 0;
  CHECK(crossings == 2);
  CHECK(order.slowest_Bps == Approx(1e7));
  CHECK(order.neighbours_Bps == Approx(1e7));
  CHECK(rank_order(on("ac"), &calibration).neighbours_Bps == Approx(1e9));
  CHECK(numbers(rank_order(on("acbd"), &calibration)).empty());
}

TEST_CASE("rank order: one way that is thin in one direction only is avoided in that direction") {
  Calibration calibration;
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"a", "b"}, {"b", "a"}, {"a", "c"}, {"c", "a"}, {"b", "c"}, {"c", "b"}})
    calibration.paths_Bps[{from, to}] = 1e9;
  calibration.paths_Bps[{"a", "b"}] = 1e6;
  const RankOrder order = rank_order(on("abc"), &calibration);
  CHECK(numbers(order) == Numbers{0, 2, 1});
  CHECK(order.slowest_Bps == Approx(1e6));
  CHECK(order.neighbours_Bps == Approx(1e9));
}

TEST_CASE("rank order: ways that are not all measured, and hosts of one name, count as not measured") {
  Calibration calibration = two_sites();
  CHECK(rank_order(on("abcde"), &calibration).slowest_Bps == 0);
  std::vector<link::PeerIdentity> same = on("ab");
  same[1].host = "a";
  CHECK(rank_order(same, &calibration).slowest_Bps == 0);
}

TEST_CASE("tuner: rings are priced by the ways that they take, other plans by the slowest; explain says so") {
  Settings settings;
  settings.calibration = Calibration{};
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"a", "b"},
                                                                                 {"b", "a"},
                                                                                 {"a", "c"},
                                                                                 {"c", "a"},
                                                                                 {"b", "c"},
                                                                                 {"c", "b"},
                                                                                 {"a", "d"},
                                                                                 {"d", "a"},
                                                                                 {"b", "d"},
                                                                                 {"d", "b"},
                                                                                 {"c", "d"},
                                                                                 {"d", "c"}})
    settings.calibration->paths_Bps[{from, to}] = 1e9;
  settings.calibration->paths_Bps[{"a", "b"}] = settings.calibration->paths_Bps[{"b", "a"}] = 1e7;
  const Situation situation = situation_of(on("abcd"), settings);
  CHECK(situation.order.neighbours_Bps == Approx(1e9));
  const engine::Call call{.collective = plan::Collective::all_reduce, .count = {4 << 20}, .type = DataType::float32};
  double ring_s = 0, halving_s = 0;
  Tuner tuner(settings, situation);
  for (const Candidate& each : tuner.candidates(call)) {
    if (each.choice.algorithm->name == "ring") ring_s = each.time_s;
    if (each.choice.algorithm->name == "halving_doubling") halving_s = each.time_s;
  }
  CHECK(ring_s > 0);
  CHECK(halving_s > 10 * ring_s);
  const std::string text = tuner.explain(call);
  CHECK_THAT(text, Catch::Contains("rings pass the ranks 0, ") &&
                       Catch::Contains("slowest way between hosts 0.08 Gb/s, between neighbours in rings 8 Gb/s"));
}

}  // namespace
}  // namespace shoal::comm
