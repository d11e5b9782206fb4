// SPDX-License-Identifier: Apache-2.0
// The choice between two ways by measured times: all ranks choose alike, the quicker way is found and left again, and trials cost
// little.
#include "engine/quickest.h"

#include <array>
#include <catch2/catch.hpp>
#include <vector>

namespace {

using shoal::engine::Quickest;
using Way = Quickest::Way;

// Ranks whose calls take so long each way: by rank and way.
class Ranks {
 public:
  explicit Ranks(std::vector<std::array<std::uint64_t, 2>> ns) : ns_(std::move(ns)), each_(ns_.size()) {}

  // One call of all. What rank 0 chose; the others must choose the same.
  Way call() {
    bool asked = false;
    for (std::size_t r = 0; r < each_.size(); ++r) {
      const bool here = each_[r].is_asked();
      if (r == 0) asked = here;
      agree_ &= here == asked;
    }
    Way way = Way::planned;
    if (asked) {
      ++asked_;
      for (Quickest& listener : each_)  // from the last rank to the first: the order must not matter
        for (std::size_t r = each_.size(); r-- > 0;) listener.hear(each_[r].told());
      for (std::size_t r = 0; r < each_.size(); ++r) {
        const Way here = each_[r].choose();
        if (r == 0) way = here;
        agree_ &= here == way;
      }
    }
    std::uint64_t slowest = 0;
    for (std::size_t r = 0; r < each_.size(); ++r) {
      const std::uint64_t took = ns_[r][static_cast<std::size_t>(way)];
      each_[r].took(way, took);
      slowest = std::max(slowest, took);
    }
    spent_ += slowest;
    return way;
  }
  int count(Way way, int calls) {
    int found = 0;
    for (int i = 0; i < calls; ++i) found += call() == way ? 1 : 0;
    return found;
  }
  void become(std::vector<std::array<std::uint64_t, 2>> ns) { ns_ = std::move(ns); }
  bool agree() const { return agree_; }
  int asked() const { return asked_; }
  std::uint64_t spent() const { return spent_; }

 private:
  std::vector<std::array<std::uint64_t, 2>> ns_;
  std::vector<Quickest> each_;
  bool agree_ = true;
  int asked_ = 0;
  std::uint64_t spent_ = 0;
};

}  // namespace

TEST_CASE("Quickest: both ways are tried, then the quicker one is kept") {
  for (const bool pulled_wins : {false, true}) {
    Ranks ranks({{60'000, pulled_wins ? 20'000U : 130'000U}, {50'000, pulled_wins ? 30'000U : 110'000U}});
    ranks.count(Way::planned, 20);
    const Way best = pulled_wins ? Way::pulled : Way::planned;
    const std::uint64_t before = ranks.spent();
    CHECK(ranks.count(best, 2000) >= 1900);
    CHECK(ranks.agree());
    const std::uint64_t least = 2000 * (pulled_wins ? 30'000ULL : 60'000ULL);
    CHECK(ranks.spent() - before <= least + least / 10);  // what trials cost
  }
}

TEST_CASE("Quickest: the slowest rank decides") {
  Ranks ranks({{10'000, 15'000}, {90'000, 20'000}, {10'000, 15'000}});
  ranks.count(Way::planned, 20);
  CHECK(ranks.count(Way::pulled, 1000) >= 900);
  CHECK(ranks.agree());
}

TEST_CASE("Quickest: a machine that changes its mind is followed") {
  const std::vector<std::array<std::uint64_t, 2>> fast{{60'000, 130'000}, {60'000, 130'000}},
      slow{{660'000, 160'000}, {660'000, 160'000}};
  Ranks ranks(fast);
  ranks.count(Way::planned, 200);
  for (int phase = 0; phase < 6; ++phase) {
    ranks.become(phase % 2 == 0 ? slow : fast);
    const Way best = phase % 2 == 0 ? Way::pulled : Way::planned;
    ranks.count(best, 600);  // until it is noticed
    CHECK(ranks.count(best, 1000) >= 900);
  }
  CHECK(ranks.agree());
}

TEST_CASE("Quickest: where calls as planned are quicker, ranks seldom ask") {
  Ranks ranks({{60'000, 130'000}, {60'000, 130'000}});
  ranks.count(Way::planned, 50);
  const int before = ranks.asked();
  ranks.count(Way::planned, 1600);
  CHECK(ranks.asked() - before <= 1600 / 15 + 40);
}

TEST_CASE("Quickest: calls that overlap count by what each takes in a row") {
  // By itself a planned call takes 90 us, but 50 where others follow; a pulled one takes 70.
  Quickest one;
  int planned = 0;
  for (int i = 0; i < 1000; ++i) {
    Way way = Way::planned;
    const bool asked = one.is_asked();
    if (asked) {
      one.hear(one.told());
      way = one.choose();
    }
    one.took(way, way == Way::pulled ? 70'000 : asked ? 90'000 : 50'000);
    planned += way == Way::planned ? 1 : 0;
  }
  CHECK(planned >= 900);
}

TEST_CASE("Quickest: no time is no figure, and the longest counts as four seconds") {
  Quickest one;
  CHECK(one.told() == Quickest::Figures{0, 0});
  CHECK(one.is_asked());
  one.hear(one.told());
  CHECK(one.choose() == Way::planned);
  one.took(Way::planned, 0);
  CHECK(one.told() == Quickest::Figures{1, 0});
  one.took(Way::pulled, ~std::uint64_t{0});
  CHECK(one.told() == Quickest::Figures{1, ~std::uint32_t{0}});
}
