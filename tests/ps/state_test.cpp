// SPDX-License-Identifier: Apache-2.0
// Shares, sums in rank order, snapshots, and the consistency models: what a server computes, without a wire.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>

#include "ps/accumulator.h"
#include "ps/shard.h"

namespace {

using namespace shoal;
using namespace shoal::ps;

Config config_of(Mode mode, int workers, std::size_t keys, Update update = Update::add, int staleness = 0) {
  return {.workers = workers,
          .servers = 1,
          .keys = {keys},
          .type = DataType::float32,
          .mode = mode,
          .staleness = staleness,
          .shares = {keys},
          .update = update};
}

std::span<const std::byte> bytes(const std::vector<float>& values) { return std::as_bytes(std::span(values)); }

std::vector<float> values(const Snapshot& snapshot) {
  std::vector<float> out(snapshot.range().count);
  snapshot.copy(snapshot.range(), std::as_writable_bytes(std::span(out)));
  return out;
}

}  // namespace

TEST_CASE("ps shares: equal ones differ by at most one key and cover all") {
  for (std::size_t servers = 1; servers <= 9; ++servers)
    for (std::size_t keys : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{1000}, SIZE_MAX / 16}) {
      const std::vector<std::size_t> shares = equal_shares(keys, servers);
      CHECK(std::accumulate(shares.begin(), shares.end(), std::size_t{0}) == keys);
      CHECK(*std::max_element(shares.begin(), shares.end()) - *std::min_element(shares.begin(), shares.end()) <= 1);
    }
  CHECK(equal_shares(10, 4) == std::vector<std::size_t>{2, 3, 2, 3});
}

TEST_CASE("ps shares: balanced ones are BytePS' and load all ports alike") {
  struct Case {
    int n, k;
    std::size_t keys, colocated, spare;
  };
  for (const Case& c : {Case{8, 0, 880, 110, 0}, Case{8, 4, 88, 4, 14}, Case{8, 8, 112, 0, 14}, Case{3, 5, 100, 0, 20},
                        Case{1, 0, 7, 7, 0}, Case{2, 1, 4, 1, 2}}) {
    INFO(c.n << ", " << c.k);
    const std::vector<std::size_t> shares = balanced_shares(c.keys, c.n, c.k);
    REQUIRE(shares.size() == static_cast<std::size_t>(c.n + c.k));
    for (int i = 0; i < c.n + c.k; ++i) CHECK(shares[static_cast<std::size_t>(i)] == (i < c.n ? c.colocated : c.spare));
  }
  for (int n = 1; n <= 9; ++n)
    for (int k = 0; k <= 10; ++k) {
      const std::vector<std::size_t> shares = balanced_shares(1'000'003, n, k);
      CHECK(std::accumulate(shares.begin(), shares.end(), std::size_t{0}) == 1'000'003);
      if (k == 0 || k >= n) continue;
      const auto colocated = static_cast<double>(shares.front()), spare = static_cast<double>(shares.back());
      CHECK(1'000'003 + (n - 2) * colocated == Approx(n * spare).margin(2.0 * n));
    }
}

TEST_CASE("ps partition: parts follow the borders, and skip servers without keys") {
  const std::array<std::size_t, 5> shares{0, 3, 0, 4, 0};
  const Partition partition(shares);
  const auto parts = [&](KeyRange range) {
    std::vector<std::array<std::size_t, 3>> all;
    partition.for_each_part(range, [&](std::size_t server, KeyRange part) { all.push_back({server, part.first, part.count}); });
    return all;
  };
  using Parts = std::vector<std::array<std::size_t, 3>>;
  CHECK(parts({0, 7}) == Parts{{1, 0, 3}, {3, 3, 4}});
  CHECK(parts({2, 2}) == Parts{{1, 2, 1}, {3, 3, 1}});
  CHECK(parts({3, 4}) == Parts{{3, 3, 4}});
  CHECK(parts({3, 0}).empty());
  CHECK(parts({7, 0}).empty());
}

TEST_CASE("ps accumulator: the bits do not depend on the order of arrival") {
  const BlockLayout layout({5, 2}, sizeof(float));
  // (1e8 + 1) - 1e8 is 0 in float32, 1e8 - 1e8 + 1 is 1.
  const std::array<std::vector<float>, 3> pushes{{{1e8F, -0.0F}, {1.0F, -0.0F}, {-1e8F, -0.0F}}};
  std::array<int, 3> order{0, 1, 2};
  do {
    Accumulator sums(layout, DataType::float32, 3);
    for (int worker : order) {
      sums.add(worker, {5, 2}, bytes(pushes[static_cast<std::size_t>(worker)]));
      sums.worker_done(worker);
    }
    std::array<float, 2> sum{};
    REQUIRE(sums.sum(0) != nullptr);
    std::memcpy(sum.data(), sums.sum(0)->data(), sizeof sum);
    CHECK(sum[0] == 0);
    CHECK(std::signbit(sum[1]));  // as -0 + -0 + -0 is
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("ps shard, sync: a fast worker's next push does not touch the iteration under way") {
  Shard shard(config_of(Mode::sync, 2, 2, Update::sum), 0, {});
  CHECK(shard.push(1, {0, 2}, bytes({10, 20}), 0).is_ok());
  CHECK(shard.tick(1).is_ok());
  CHECK(shard.may_take(1, Wish::push));
  CHECK_FALSE(shard.may_take(1, Wish::pull));
  CHECK(shard.push(1, {0, 2}, bytes({1000, 2000}), 0).is_ok());
  CHECK(shard.tick(1).is_ok());
  CHECK_FALSE(shard.may_take(1, Wish::push));  // two iterations ahead
  CHECK(shard.slowest_worker() == 0);

  CHECK(shard.push(0, {0, 2}, bytes({1, 2}), 0).is_ok());
  CHECK(values(shard.pull({0, 2})) == std::vector<float>{0, 0});
  CHECK(shard.tick(0).is_ok());
  CHECK(values(shard.pull({0, 2})) == std::vector<float>{11, 22});
  CHECK(shard.may_take(0, Wish::pull));
  CHECK_FALSE(shard.may_take(1, Wish::pull));
  CHECK(shard.may_take(1, Wish::push));

  CHECK(shard.push(0, {1, 1}, bytes({5}), 0).is_ok());
  CHECK(shard.tick(0).is_ok());
  CHECK(values(shard.pull({0, 2})) == std::vector<float>{1000, 2005});
  CHECK(shard.may_take(1, Wish::pull));
}

TEST_CASE("ps shard, sync: who leaves holds nobody back") {
  Shard shard(config_of(Mode::sync, 3, 1), 0, {});
  CHECK(shard.push(2, {0, 1}, bytes({4}), 0).is_ok());
  CHECK(shard.tick(2).is_ok());
  CHECK(shard.leave(0).is_ok());
  CHECK_FALSE(shard.may_take(2, Wish::pull));
  CHECK(shard.push(1, {0, 1}, bytes({2}), 0).is_ok());
  CHECK(shard.tick(1).is_ok());
  CHECK(shard.may_take(2, Wish::pull));
  CHECK(values(shard.pull({0, 1})) == std::vector<float>{6});
  CHECK(shard.leave(1).is_ok());
  CHECK_FALSE(shard.all_have_left());
  CHECK(shard.push(2, {0, 1}, bytes({1}), 0).is_ok());
  CHECK(shard.tick(2).is_ok());
  CHECK(values(shard.pull({0, 1})) == std::vector<float>{7});
  CHECK(shard.leave(2).is_ok());
  CHECK(shard.all_have_left());
}

TEST_CASE("ps shard, ssp: a worker is served while it is at most `staleness` ahead") {
  for (int staleness = 0; staleness <= 3; ++staleness) {
    Shard shard(config_of(Mode::ssp, 2, 1, Update::add, staleness), 0, {});
    for (int clock = 0; clock <= staleness; ++clock) {
      CHECK(shard.may_take(1, Wish::pull));
      CHECK(shard.may_take(1, Wish::push));
      CHECK(shard.tick(1).is_ok());
    }
    CHECK_FALSE(shard.may_take(1, Wish::pull));
    CHECK_FALSE(shard.may_take(1, Wish::push));
    CHECK(shard.may_take(0, Wish::pull));
    CHECK(shard.tick(0).is_ok());
    CHECK(shard.may_take(1, Wish::pull));
  }
}

TEST_CASE("ps shard, async: a push shows when its last piece is here, and earlier snapshots stay as they were") {
  const std::size_t keys = kBlockKeys + 10;
  Shard shard(config_of(Mode::async, 2, keys), 0, {});
  const std::vector<float> first(kBlockKeys + 2, 1), rest(8, 1);
  CHECK(shard.push(0, {0, first.size()}, bytes(first), rest.size()).is_ok());
  CHECK(values(shard.pull({0, keys})) == std::vector<float>(keys, 0));
  const Snapshot before = shard.pull({0, keys});
  CHECK(shard.push(0, {first.size(), rest.size()}, bytes(rest), 0).is_ok());
  CHECK(values(before) == std::vector<float>(keys, 0));
  CHECK(values(shard.pull({0, keys})) == std::vector<float>(keys, 1));
  CHECK(values(shard.pull({kBlockKeys - 1, 3})) == std::vector<float>(3, 1));
}

TEST_CASE("ps shard: the update function sees every key once an iteration, with the workers that are in it") {
  struct Seen {
    std::size_t calls = 0, next = 0;
    int workers = 0;
    std::uint64_t iteration = 0;
    float sum = 0;
  } seen;
  const std::size_t keys = 2 * kBlockKeys + 1;
  Own own;
  own.user = &seen;
  own.function = [](std::size_t at, std::size_t count, void* weights, const void* gradient, int workers, std::uint64_t iteration,
                    void* user) {
    Seen& s = *static_cast<Seen*>(user);
    if (at != s.next) return 1;
    s.next = at + count;
    ++s.calls;
    s.workers = workers;
    s.iteration = iteration;
    for (std::size_t i = 0; i < count; ++i) {
      s.sum += static_cast<const float*>(gradient)[i];
      static_cast<float*>(weights)[i] += 100 + static_cast<const float*>(gradient)[i];
    }
    return 0;
  };
  Shard shard(config_of(Mode::sync, 3, keys, Update::custom), 0, own);
  for (int iteration = 0; iteration < 2; ++iteration) {
    seen = {};
    for (int worker : {2, 0, 1}) {
      CHECK(shard.push(worker, {7, 1}, bytes({1}), 0).is_ok());
      CHECK(shard.tick(worker).is_ok());
    }
    CHECK(seen.next == keys);
    CHECK(seen.calls == 3);
    CHECK(seen.workers == 3);
    CHECK(seen.iteration == static_cast<std::uint64_t>(iteration));
    CHECK(seen.sum == 3);
  }
  CHECK(values(shard.pull({6, 2})) == std::vector<float>{200, 206});

  own.function = [](std::size_t, std::size_t, void*, const void*, int, std::uint64_t, void*) { return 5; };
  Shard refusing(config_of(Mode::async, 1, 3, Update::custom), 0, own);
  const Status refused = refusing.push(0, {1, 2}, bytes({1, 1}), 0);
  CHECK(refused.code() == Code::invalid_usage);
  CHECK(refused.text() == "rank 1: the update function returned 5 for keys 1 .. 2 of iteration 0");
  CHECK(refused.culprit() == Rank{1});
}

TEST_CASE("ps shard: weights start from the caller's values, of this server's keys") {
  const std::vector<float> all{0, 1, 2, 3, 4};
  Own own;
  own.initial = bytes(all).data();
  Config config = config_of(Mode::async, 1, 5);
  config.servers = 2;
  config.shares = {3, 2};
  CHECK(values(Shard(config, 1, own).pull({3, 2})) == std::vector<float>{3, 4});
}
