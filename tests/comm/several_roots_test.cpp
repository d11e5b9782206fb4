// SPDX-License-Identifier: Apache-2.0
// A communicator from several unique ids: who gathers whom, and all that one root service promises, across several.
#include "comm/several_roots.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "comm/ranks.h"
#include "comm/sealed_id.h"
#include "comm/services.h"

namespace shoal::comm::testing {
namespace {

using namespace std::chrono_literals;

std::vector<UniqueId> new_ids(int n) {
  std::vector<UniqueId> ids;
  for (int i = 0; i < n; ++i) ids.push_back(new_id());
  return ids;
}

Result<Agreement> join(const std::vector<UniqueId>& ids, int rank, int world, std::chrono::milliseconds timeout = kLong) {
  return bootstrap(ids, Rank{rank}, World{world}, identity(rank), "settings of " + std::to_string(rank), loopback_environment(),
                   timeout);
}

std::vector<Result<Agreement>> join_all(const std::vector<UniqueId>& ids, const std::vector<int>& ranks, int world,
                                        std::chrono::milliseconds timeout = kLong) {
  std::vector<Result<Agreement>> results;
  for (std::size_t i = 0; i < ranks.size(); ++i) results.emplace_back(Status(Code::internal_error, "did not run"));
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    workers.emplace_back([&, i] { results[i] = join(ids, ranks[i], world, timeout); });
  for (std::thread& worker : workers) worker.join();
  return results;
}

// Makes ids in processes of their own; each says its id in hexadecimal and lives until it is killed.
struct Maker {
  Process process{[](const Process::Say& say) {
    const std::array<char, UniqueId::kBytes> bytes = new_id().encode();
    std::string text;
    for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    say(text);
    std::this_thread::sleep_for(60s);
  }};
  UniqueId id() {
    const std::string text = process.line();
    std::array<char, UniqueId::kBytes> bytes{};
    for (std::size_t i = 0; i < bytes.size() && 2 * i + 1 < text.size(); ++i)
      bytes[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
    const Result<UniqueId> id = UniqueId::decode(bytes);
    REQUIRE(id.is_ok());
    return *id;
  }
};

}  // namespace

TEST_CASE("several roots: ranks are dealt out in contiguous blocks, as equal as possible") {
  for (int world = 1; world <= 40; ++world)
    for (std::size_t ids = 1; ids <= static_cast<std::size_t>(world); ++ids) {
      std::vector<int> of(ids, 0);
      std::size_t last = 0;
      for (int rank = 0; rank < world; ++rank) {
        const std::size_t root = root_of(Rank{rank}, World{world}, ids);
        REQUIRE(root < ids);
        REQUIRE(root >= last);
        last = root;
        ++of[root];
      }
      const auto [least, most] = std::minmax_element(of.begin(), of.end());
      REQUIRE(*least >= 1);
      REQUIRE(*most - *least <= 1);
    }
  CHECK(root_of(Rank{2}, World{7}, 3) == 0);
  CHECK(root_of(Rank{3}, World{7}, 3) == 1);
}

TEST_CASE("several roots: none, too many and doubled ids are refused; the same one throughout counts once") {
  const std::vector<UniqueId> two = new_ids(2);
  CHECK(distinct_ids({}, World{2}).status().text() == "a communicator needs a unique id, and none was given");
  CHECK_THAT(std::string(distinct_ids(two, World{1}).status().text()),
             Catch::StartsWith("2 unique ids for a communicator of 1 ranks"));
  const std::vector<UniqueId> doubled = {two[0], two[1], two[0]};
  CHECK_THAT(std::string(distinct_ids(doubled, World{3}).status().text()),
             Catch::StartsWith("the unique ids number 0 and 2 are the same"));
  CHECK(distinct_ids(std::vector<UniqueId>(5, two[0]), World{2})->size() == 1);
  CHECK(distinct_ids(two, World{2})->size() == 2);
  for (const UniqueId& id : two) CHECK(testing::join(id, 0, 1).is_ok());  // so that the services end
}

TEST_CASE("several roots: the id that a rank hands its root is sealed, and opens only with its session") {
  const UniqueId id = new_id();
  const link::Key session = link::random_key();
  std::vector<std::byte> sealed = seal(id, session, "p");
  CHECK(std::search(sealed.begin(), sealed.end(), id.key.bytes.begin(), id.key.bytes.end()) == sealed.end());
  REQUIRE(unseal(sealed, session, "p").is_ok());
  CHECK(*unseal(sealed, session, "p") == id);
  CHECK_FALSE(unseal(sealed, session, "q").is_ok());
  CHECK_FALSE(unseal(sealed, link::random_key(), "p").is_ok());
  sealed[3] ^= std::byte{1};
  CHECK_FALSE(unseal(sealed, session, "p").is_ok());
  CHECK(testing::join(id, 0, 1).is_ok());
}

TEST_CASE("several roots: all ranks agree on the same table, whatever the number of ids") {
  const auto [world, roots] = GENERATE(table<int, int>({{2, 2}, {3, 2}, {7, 3}, {8, 8}, {9, 4}, {16, 2}, {33, 5}}));
  CAPTURE(world, roots);
  auto all = join_all(new_ids(roots), ranks_below(world), world);
  for (const auto& one : all) {
    INFO(one.status().text());
    REQUIRE(one.is_ok());
    REQUIRE(one->peers.size() == static_cast<std::size_t>(world));
    for (int rank = 0; rank < world; ++rank) REQUIRE(one->peers[static_cast<std::size_t>(rank)].host == identity(rank).host);
    REQUIRE(one->settings == "settings of 0");
  }
  for (auto& one : all) CHECK(one->control->progress().is_ok());
  for (auto& one : all) one->control->bye();
}

TEST_CASE("several roots: death, abort and failure of a rank reach every rank of every root") {
  const auto with_own_root = GENERATE(0, 2, 5);  // the rank's, of 6 ranks and 3 ids
  const std::string who = fmt::format("rank {} (node{}, pid {})", with_own_root, with_own_root, getpid());
  const auto at = static_cast<std::size_t>(with_own_root);
  const auto check_others = [&](std::vector<Result<Agreement>>& all, const std::string& text) {
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (rank != at) CHECK(show(wait_for_failure(*all[rank]->control)) == fmt::format("6 culprit {}: {}{}", at, who, text));
  };
  auto dead = join_all(new_ids(3), ranks_below(6), 6);
  for (const auto& one : dead) REQUIRE(one.is_ok());
  dead[at]->control.reset();
  check_others(dead, " died");
  auto aborted = join_all(new_ids(3), ranks_below(6), 6);
  for (const auto& one : aborted) REQUIRE(one.is_ok());
  aborted[at]->control->announce_abort();
  check_others(aborted, " aborted the communicator");
  CHECK(watch(*aborted[at]->control, 50ms).is_ok());
  auto failed = join_all(new_ids(3), ranks_below(6), 6);
  for (const auto& one : failed) REQUIRE(one.is_ok());
  failed[at]->control->announce_failure(Status(Code::system_error, "no memory"));
  check_others(failed, " failed: no memory");
}

TEST_CASE("several roots: a bye is silent") {
  auto all = join_all(new_ids(3), ranks_below(6), 6);
  for (const auto& one : all) REQUIRE(one.is_ok());
  for (const std::size_t rank : {2U, 3U, 0U}) {
    all[rank]->control->bye();
    all[rank]->control.reset();
  }
  for (const std::size_t rank : {1U, 4U, 5U}) CHECK(watch(*all[rank]->control, 150ms).is_ok());
}

TEST_CASE("several roots: a timeout says on every rank who of all is missing") {
  for (const auto& one : join_all(new_ids(3), {0, 2, 4}, 6, 700ms)) {
    REQUIRE_FALSE(one.is_ok());
    CHECK(show(one.status()) == "8 culprit 1: only 3 of 6 ranks came within 700 ms; missing: 1, 3, 5");
  }
}

TEST_CASE("several roots: contradictions are told to all ranks of all roots") {
  SECTION("the same rank twice") {
    for (const auto& one : join_all(new_ids(2), {0, 1, 3, 3}, 4)) {
      REQUIRE_FALSE(one.is_ok());
      CHECK(one.status().code() == Code::invalid_usage);
      CHECK(one.status().text().starts_with("two processes say that they are rank 3: "));
    }
  }
  SECTION("another list of ids") {
    const std::vector<UniqueId> ids = new_ids(3);
    const std::vector<UniqueId> fewer = {ids[0], ids[1]};
    std::vector<Status> got(3);
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 3; ++rank)
      ranks.emplace_back([&, rank] { got[static_cast<std::size_t>(rank)] = join(rank == 1 ? fewer : ids, rank, 3).status(); });
    for (std::thread& rank : ranks) rank.join();
    for (const Status& status : got) {
      CHECK(status.code() == Code::invalid_usage);
      CHECK_THAT(std::string(status.text()), Catch::Contains("was given 2") && Catch::Contains("give all ranks the same ones"));
    }
  }
}

TEST_CASE("several roots: a rank that cannot join makes all others fail at once, naming it and why") {
  const int roots = GENERATE(1, 3), culprit = GENERATE(1, 3);
  CAPTURE(roots, culprit);
  const std::vector<UniqueId> ids = new_ids(roots);
  std::thread late([&] {
    decline(ids, Rank{culprit}, World{4}, identity(culprit), loopback_environment(), Status(Code::system_error, "no memory"));
  });
  std::vector<int> others = ranks_below(4);
  others.erase(others.begin() + culprit);
  for (const auto& one : join_all(ids, others, 4)) {
    REQUIRE_FALSE(one.is_ok());
    CHECK(show(one.status()) == fmt::format("6 culprit {0}: rank {0} (node{0}, pid {1}) failed: no memory", culprit, getpid()));
  }
  late.join();
}

TEST_CASE("several roots: the death of a process that made an id is told to all") {
  if (!kChildrenMayStartThreads) return;
  const bool first = GENERATE(true, false);
  std::vector<Maker> makers(2);
  const std::vector<UniqueId> ids = {makers[0].id(), makers[1].id()};
  const std::size_t doomed = first ? 0 : 1;
  auto all = join_all(ids, ranks_below(4), 4);
  for (const auto& one : all) {
    INFO(one.status().text());
    REQUIRE(one.is_ok());
  }
  makers[doomed].process.kill();
  for (auto& one : all) {
    const Status status = wait_for_failure(*one->control);
    CHECK(status.code() == Code::remote_error);
    CHECK_THAT(std::string(status.text()), Catch::Contains("the process that made the") && Catch::Contains("unique id") &&
                                               Catch::Contains(ids[doomed].address()) && Catch::Contains("died"));
  }
}

TEST_CASE("several roots: an id whose maker is gone fails all ranks that came, soon, and says where") {
  const bool first = GENERATE(true, false);
  std::vector<UniqueId> ids = new_ids(2);
  const Result<link::Listener> closed = link::listen_tcp("127.0.0.1", 0);
  REQUIRE(closed.is_ok());
  ids[first ? 0 : 1].addresses = {"127.0.0.2:1"};
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& one : join_all(ids, ranks_below(4), 4, 8000ms)) {
    CHECK_FALSE(one.is_ok());
    INFO(one.status().text());
    CHECK((one.status().text().find("127.0.0.2:1") != std::string_view::npos ||
           one.status().text().find("missing: 2, 3") != std::string_view::npos));
  }
  CHECK(std::chrono::steady_clock::now() - begin < 20s);
}

}  // namespace shoal::comm::testing
