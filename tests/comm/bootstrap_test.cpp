// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap.h"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "comm/approach.h"
#include "comm/ranks.h"
#include "comm/root_service.h"

namespace shoal::comm::testing {
namespace {

using namespace std::chrono_literals;

void check_agreement(const Result<Agreement>& result, int world) {
  REQUIRE(result.is_ok());
  REQUIRE(result->peers.size() == static_cast<std::size_t>(world));
  for (int rank = 0; rank < world; ++rank) {
    const link::PeerIdentity& peer = result->peers[static_cast<std::size_t>(rank)];
    const link::PeerIdentity right = identity(rank);
    REQUIRE(peer.rank == right.rank);
    REQUIRE(peer.host == right.host);
    REQUIRE(peer.process == right.process);
    REQUIRE(peer.address == right.address);
    REQUIRE(peer.local_address == right.local_address);
  }
  REQUIRE(result->settings == "settings of 0");
  REQUIRE(result->control != nullptr);
}

void leave(std::vector<Result<Agreement>>& all) {
  for (Result<Agreement>& one : all)
    if (one.is_ok()) one->control->bye();
}

int free_port() {
  const Result<link::Listener> listener = link::listen_tcp("127.0.0.1", 0);
  return listener.is_ok() ? link::parse_host_port(listener->address)->port : 0;
}

// A client that knows the key and says what it likes.
Result<Channel> member(const UniqueId& id) {
  Approach plan;
  plan.whom = "root";
  plan.addresses = id.addresses;
  plan.key = bootstrap_key(id.key);
  plan.hello = std::as_bytes(std::span(kBootstrapHello));
  plan.max_payload = 1 << 20;
  return approach(plan, Deadline(kLong));
}

TEST_CASE("bootstrap: all ranks, as threads, agree on the same table") {
  const int world = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9, 32);
  CAPTURE(world);
  auto all = join_all(new_id(), ranks_below(world), world);
  for (const auto& one : all) check_agreement(one, world);
  for (auto& one : all) CHECK(one->control->progress().is_ok());
  leave(all);
}

TEST_CASE("bootstrap: all ranks, as processes, agree on the same table") {
  const int world = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9);
  const UniqueId id = new_id();
  std::vector<Process> processes;
  for (int rank = 0; rank < world; ++rank)
    processes.emplace_back([&, rank](const Process::Say& say) {
      Result<Agreement> agreement = join(id, rank, world);
      if (!agreement.is_ok()) return say(show(agreement.status()));
      std::string hosts;
      for (const link::PeerIdentity& peer : agreement->peers) hosts += peer.host;
      agreement->control->bye();
      say(hosts + agreement->settings);
    });
  std::string right;
  for (int rank = 0; rank < world; ++rank) right += "node" + std::to_string(rank);
  for (Process& process : processes) CHECK(process.line() == right + "settings of 0");
}

TEST_CASE("bootstrap: settings of a megabyte pass, more is refused, as is an identity that is too long") {
  const UniqueId id = new_id();
  link::PeerIdentity self = identity(0);
  const std::string most(1 << 20, 'x');
  CHECK(bootstrap({&id, 1}, Rank{0}, World{1}, self, most + "x", loopback_environment(), kLong).status().code() ==
        Code::invalid_argument);
  self.host = std::string(257, 'h');
  CHECK(bootstrap({&id, 1}, Rank{0}, World{1}, self, "", loopback_environment(), kLong).status().code() ==
        Code::invalid_argument);
  const auto fits = bootstrap({&id, 1}, Rank{0}, World{1}, identity(0), most, loopback_environment(), kLong);
  REQUIRE(fits.is_ok());
  CHECK(fits->settings == most);
}

TEST_CASE("bootstrap: different world sizes are told to all, naming both") {
  const UniqueId id = new_id();
  std::vector<Status> got(2);
  std::thread other([&] { got[1] = join(id, 1, 3).status(); });
  got[0] = join(id, 0, 2).status();
  other.join();
  for (const Status& status : got) {
    CHECK(status.code() == Code::invalid_usage);
    CHECK(status.text().find("rank 0 (node0") != std::string_view::npos);
    CHECK(status.text().find("rank 1 (node1") != std::string_view::npos);
  }
}

TEST_CASE("bootstrap: the same rank twice is told to all") {
  for (const auto& one : join_all(new_id(), {0, 1, 1}, 3)) {
    REQUIRE_FALSE(one.is_ok());
    CHECK(one.status().code() == Code::invalid_usage);
    CHECK(one.status().culprit() == std::optional(Rank{1}));
    CHECK(one.status().text().starts_with("two processes say that they are rank 1: rank 1 (node1, pid "));
  }
}

TEST_CASE("bootstrap: a rank out of range is told to all, also to those that come later") {
  const UniqueId id = new_id();
  const Status first = join(id, 7, 3).status();
  CHECK(first.code() == Code::invalid_usage);
  CHECK(first.text().starts_with("rank 7 (node7, pid "));
  for (const int rank : {0, 1}) CHECK(show(join(id, rank, 3).status()) == show(first));
}

TEST_CASE("bootstrap: another version of the library is told to all") {
  const UniqueId id = new_id();
  Result<Channel> old = member(id);
  REQUIRE(old.is_ok());
  old->send(Record{"0.0.1", World{2}, identity(1), "", false});
  old->progress();
  const Status status = join(id, 0, 2).status();
  CHECK(status.code() == Code::invalid_usage);
  CHECK(status.text().find("Shoal 0.0.1") != std::string_view::npos);
}

TEST_CASE("bootstrap: whoever comes to a complete communicator is refused, and the others do not notice") {
  const UniqueId id = new_id();
  auto all = join_all(id, {0, 1}, 2);
  const Status late = join(id, 1, 2).status();
  CHECK(late.code() == Code::invalid_usage);
  CHECK(late.text().find("comes too late") != std::string_view::npos);
  for (auto& one : all) {
    REQUIRE(one.is_ok());
    CHECK(watch(*one->control, 50ms).is_ok());
  }
  leave(all);
}

TEST_CASE("bootstrap: a timeout says on every rank how many came and who is missing") {
  for (const auto& one : join_all(new_id(), {0, 2}, 4, 700ms)) {
    REQUIRE_FALSE(one.is_ok());
    CHECK(show(one.status()) == "8 culprit 1: only 2 of 4 ranks came within 700 ms; missing: 1, 3");
  }
}

TEST_CASE("bootstrap: a rank that dies meanwhile is a remote error on all others, naming it") {
  const UniqueId id = new_id();
  Process doomed([&](const Process::Say& say) {
    Result<Channel> channel = member(id);
    if (!channel.is_ok()) return say("not reached");
    channel->send(Record{SHOAL_VERSION, World{4}, identity(2), "", false});
    channel->progress();
    say("in");
    std::this_thread::sleep_for(30s);
  });
  CHECK(doomed.line() == "in");
  std::thread killer([&] {
    std::this_thread::sleep_for(100ms);
    doomed.kill();
  });
  for (const auto& one : join_all(id, {0, 1}, 4)) {
    CHECK(one.status().code() == Code::remote_error);
    CHECK(one.status().culprit() == std::optional(Rank{2}));
    CHECK(one.status().text() == fmt::format("rank 2 (node2, pid {}) died while the communicator was being made", doomed.id()));
  }
  killer.join();
}

TEST_CASE("bootstrap: an id whose maker is gone is a remote error within seconds, and one with another key is refused") {
  UniqueId gone = new_id();
  gone.addresses = {"127.0.0.1:" + std::to_string(free_port())};
  const Status nobody = join(gone, 0, 1).status();
  CHECK(nobody.code() == Code::remote_error);
  CHECK(nobody.text().find(gone.address()) != std::string_view::npos);
  CHECK(nobody.text().find("Connection refused") != std::string_view::npos);
  UniqueId forged = new_id();
  forged.key = link::random_key();
  const Status refused = join(forged, 0, 1, 1000ms).status();
  CHECK_FALSE(refused.is_ok());
  CHECK(refused.text().find("key") != std::string_view::npos);
}

TEST_CASE("NCCL_COMM_ID: rank 0 starts the service, others may come first, and the next communicator takes the same port") {
  Environment environment = loopback_environment();
  environment.comm_id = "127.0.0.1:" + std::to_string(free_port());
  std::vector<Result<Agreement>> kept;
  for (int round = 0; round < 3; ++round) {
    const Result<UniqueId> id = make_unique_id(environment);
    REQUIRE(id.is_ok());
    std::vector<Result<Agreement>> all;
    for (int rank = 0; rank < 3; ++rank) all.emplace_back(Status(Code::internal_error, "did not run"));
    std::vector<std::thread> workers;
    for (const int rank : {2, 1, 0}) {
      workers.emplace_back([&, rank] {
        all[static_cast<std::size_t>(rank)] =
            bootstrap({&*id, 1}, Rank{rank}, World{3}, identity(rank), "settings of " + std::to_string(rank), environment, kLong);
      });
      if (rank == 1) std::this_thread::sleep_for(50ms);
    }
    for (std::thread& worker : workers) worker.join();
    for (auto& one : all) {
      check_agreement(one, 3);
      kept.push_back(std::move(one));  // earlier communicators stay alive
    }
  }
  for (auto& one : kept) CHECK(one->control->progress().is_ok());
  leave(kept);
}

TEST_CASE("NCCL_COMM_ID: a missing rank 0 is a timeout, a taken port a system error") {
  Environment environment = loopback_environment();
  const int port = free_port();
  environment.comm_id = "127.0.0.1:" + std::to_string(port);
  const Result<UniqueId> id = make_unique_id(environment);
  REQUIRE(id.is_ok());
  const Status alone = bootstrap({&*id, 1}, Rank{1}, World{2}, identity(1), "", environment, 300ms).status();
  CHECK(alone.code() == Code::timeout);
  CHECK(alone.text().starts_with("rank 0 at " + environment.comm_id + " was not reached within 300 ms"));
  const Result<link::Listener> other = link::listen_tcp("127.0.0.1", static_cast<std::uint16_t>(port));
  REQUIRE(other.is_ok());
  const Status taken = bootstrap({&*id, 1}, Rank{0}, World{2}, identity(0), "", environment, 300ms).status();
  CHECK(taken.code() == Code::system_error);
  CHECK(taken.text().find(environment.comm_id) != std::string_view::npos);
}

TEST_CASE("bootstrap: a rank whose wait is interrupted leaves at once, and the others learn its name") {
  const UniqueId id = new_id();
  std::atomic<bool> interrupted{false};
  std::array<Status, 2> results;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      const Interrupted asked = rank == 1 ? Interrupted([&] { return interrupted.load(); }) : Interrupted();
      results[static_cast<std::size_t>(rank)] =
          bootstrap(id, Rank{rank}, World{3}, identity(rank), "", loopback_environment(), kLong, asked).status();
    });
  std::this_thread::sleep_for(300ms);
  interrupted = true;
  for (std::thread& each : ranks) each.join();
  CHECK(show(results[1]) == "5 culprit -1: the communicator was aborted here while it was being made");
  CHECK(results[0].code() == Code::remote_error);
  CHECK(results[0].culprit() == Rank{1});
  CHECK(results[0].text().find("aborted the communicator") != std::string_view::npos);
}

TEST_CASE("bootstrap: the excuse of a rank that cannot come ends the others' wait, naming it") {
  const UniqueId id = new_id();
  Status waiting;
  std::thread rank0([&] { waiting = join(id, 0, 3).status(); });
  std::this_thread::sleep_for(100ms);
  excuse(id, Rank{1}, World{3}, identity(1), fail(Code::system_error, "no memory"), loopback_environment());
  rank0.join();
  CHECK(waiting.code() == Code::remote_error);
  CHECK(waiting.culprit() == Rank{1});
  CHECK(waiting.text().find("failed: no memory") != std::string_view::npos);
}

// In a process of its own, where no service of an earlier test lives on.
TEST_CASE("bootstrap: two hundred communicators one after another leave no descriptor and no thread") {
  if (!kChildrenMayStartThreads) return;
  Process process([](const Process::Say& say) {
    const auto round = [] {
      auto all = join_all(new_id(), {0, 1}, 2);
      const bool made = all[0].is_ok() && all[1].is_ok();
      leave(all);
      return made;
    };
    if (!round()) return say("the first failed");  // whatever is made once is made now
    if (!settle()) return say("the first left a thread");
    const int descriptors = open_descriptors();
    const int thread_count = threads();
    for (int i = 0; i < 200; ++i)
      if (!round()) return say("one failed");
    say(returns_to(descriptors, thread_count) ? "none left"
                                              : fmt::format("{} descriptors, {} threads", open_descriptors(), threads()));
  });
  CHECK(process.line() == "none left");
}

}  // namespace
}  // namespace shoal::comm::testing
