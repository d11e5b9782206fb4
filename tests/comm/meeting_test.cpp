// SPDX-License-Identifier: Apache-2.0
#include "comm/meeting.h"

#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "comm/ranks.h"

namespace shoal::comm::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kLong_ms = 20'000;

// Of this test's process alone, and of this use of it.
Launch job(const std::string& name, int rank, int world) {
  Launch launch;
  launch.rank = launch.local_rank = rank;
  launch.world = launch.local_world = world;
  launch.launcher = "shoal-run";
  launch.job = fmt::format("test {} {}", identity(0).pid, name);
  return launch;
}

std::string free_address() {
  const Result<link::Listener> listener = link::listen_tcp("127.0.0.1", 0);
  return listener.is_ok() ? listener->address : "";
}

std::string key_text(const Result<UniqueId>& id) {
  if (!id.is_ok()) return show(id.status());
  const auto bytes = id->encode();
  return {bytes.begin(), bytes.end()};
}

std::vector<std::string> meet(const std::vector<Launch>& launches, std::int64_t timeout_ms = kLong_ms) {
  std::vector<std::string> results(launches.size());
  std::vector<std::thread> workers;
  for (std::size_t i = launches.size(); i-- > 0;)  // rank 0 last: the others have to wait for it
    workers.emplace_back([&, i] { results[i] = key_text(launch_unique_id(launches[i], loopback_environment(), timeout_ms)); });
  for (std::thread& worker : workers) worker.join();
  return results;
}

void check_same(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    REQUIRE(id.size() == UniqueId::kBytes);
    REQUIRE(id == ids.front());
  }
}

TEST_CASE("launch_unique_id: one rank needs no meeting") {
  const Result<UniqueId> id = launch_unique_id(job("alone", 0, 1), loopback_environment(), kLong_ms);
  REQUIRE(id.is_ok());
  CHECK(join(*id, 0, 1).is_ok());
}

TEST_CASE("launch_unique_id: ranks of one host meet locally, again and again, and get the same usable id") {
  const int world = GENERATE(2, 3, 9);
  std::vector<Launch> launches;
  for (int rank = 0; rank < world; ++rank) launches.push_back(job("local" + std::to_string(world), rank, world));
  std::string last;
  for (int round = 0; round < 3; ++round) {
    const std::vector<std::string> ids = meet(launches);
    check_same(ids);
    CHECK(ids.front() != last);
    last = ids.front();
  }
  std::array<char, UniqueId::kBytes> bytes;
  std::copy(last.begin(), last.end(), bytes.begin());
  const Result<UniqueId> id = UniqueId::decode(bytes);
  REQUIRE(id.is_ok());
  for (const auto& one : join_all(*id, ranks_below(world), world)) CHECK(one.is_ok());
}

TEST_CASE("launch_unique_id: ranks meet at a port, with and without a secret, by address and by name") {
  const std::string secret = GENERATE("", "a secret that all ranks know");
  std::string place = free_address();
  if (GENERATE(false, true)) place = "localhost:" + std::to_string(link::parse_host_port(place)->port);
  std::vector<Launch> launches;
  for (int rank = 0; rank < 4; ++rank) {
    launches.push_back(job("port", rank, 4));
    launches.back().rendezvous = place;
    launches.back().secret = secret;
    launches.back().local_world = 2;
  }
  for (int round = 0; round < 2; ++round) check_same(meet(launches));
}

TEST_CASE("launch_unique_id: ranks are processes") {
  const bool local = GENERATE(true, false);
  const std::string place = local ? "" : free_address();
  const Launch parent = job("processes", 0, 5);
  std::vector<Process> processes;
  for (int rank = 0; rank < 5; ++rank)
    processes.emplace_back([&, rank](const Process::Say& say) {
      Launch launch = parent;
      launch.rank = launch.local_rank = rank;
      launch.rendezvous = place;
      const Result<UniqueId> id = launch_unique_id(launch, loopback_environment(), kLong_ms);
      if (!id.is_ok()) return say(show(id.status()));
      Result<Agreement> agreement = join(*id, rank, 5);
      say(agreement.is_ok() ? std::to_string(id->communicator) : show(agreement.status()));
      if (agreement.is_ok()) agreement->control->bye();
      if (rank == 0) (void)settle();
    });
  const std::string first = processes[0].line();
  CHECK(first.find("culprit") == std::string::npos);
  for (std::size_t rank = 1; rank < 5; ++rank) CHECK(processes[rank].line() == first);
}

TEST_CASE("launch_unique_id: two jobs at once at the same port do not mix: one waits for the port, each gets its own id") {
  const std::string place = free_address();
  std::vector<Launch> launches;
  for (const char* name : {"job a", "job b"})
    for (int rank = 0; rank < 3; ++rank) {
      launches.push_back(job(name, rank, 3));
      launches.back().rendezvous = place;
    }
  const std::vector<std::string> ids = meet(launches);
  check_same({ids[0], ids[1], ids[2]});
  check_same({ids[3], ids[4], ids[5]});
  CHECK(ids[0] != ids[3]);
}

TEST_CASE("launch_unique_id: whoever has another secret gets no id") {
  std::vector<Launch> launches;
  for (int rank = 0; rank < 2; ++rank) {
    launches.push_back(job("secrets", rank, 2));
    launches.back().rendezvous = "127.0.0.1:" + std::to_string(link::parse_host_port(free_address())->port);
    launches.back().secret = "secret " + std::to_string(rank);
  }
  launches[1].rendezvous = launches[0].rendezvous;
  const std::vector<std::string> ids = meet(launches, 500);
  CHECK(ids[0] == fmt::format("8 culprit 1: only 1 of 2 ranks came to {} within 500 ms; missing: 1", launches[0].rendezvous));
  CHECK(ids[1].starts_with(fmt::format("8 culprit -1: rank 0 at {} was not reached within 500 ms: ", launches[0].rendezvous)));
}

TEST_CASE("launch_unique_id: a timeout names the missing at rank 0, and the place elsewhere") {
  const std::vector<std::string> ids = meet({job("late", 0, 4), job("late", 2, 4)}, 400);
  CHECK(ids[0].starts_with("8 culprit 1: only 2 of 4 ranks came to shoal-"));
  CHECK(ids[0].ends_with(" within 400 ms; missing: 1, 3"));
  CHECK(ids[1].size() == UniqueId::kBytes);
  const std::vector<std::string> alone = meet({job("no zero", 1, 2)}, 200);
  CHECK(alone[0].starts_with("8 culprit -1: rank 0 at shoal-"));
  CHECK(alone[0].find(" was not reached within 200 ms: ") != std::string::npos);
}

TEST_CASE("launch_unique_id: a timeout of ranks without a job's name says that their parents may differ") {
  Launch launch = job("", 1, 2);
  launch.job = fmt::format("parent {}.0", identity(0).pid);
  const Status status = launch_unique_id(launch, loopback_environment(), 100).status();
  CHECK(status.code() == Code::timeout);
  CHECK(status.text().ends_with("SHOAL_JOB is not set, so only children of one parent process meet: set it alike on all ranks"));
}

TEST_CASE("launch_unique_id: ranks of several hosts need a place to meet") {
  Launch launch = job("hosts", 0, 4);
  launch.local_world = 2;
  const Status status = launch_unique_id(launch, loopback_environment(), kLong_ms).status();
  CHECK(status.code() == Code::invalid_usage);
  CHECK(status.text().find("SHOAL_RENDEZVOUS=host:port") != std::string_view::npos);
}

TEST_CASE("launch_unique_id: strangers at the meeting place do not disturb it") {
  const std::string place = free_address();
  std::vector<link::Descriptor> silent;
  std::thread strangers([&] {
    for (int i = 0; i < 50; ++i) {
      Result<link::Descriptor> stream = link::start_connect_tcp(place);
      if (stream.is_ok()) {
        const link::Key noise = link::random_key();
        if (i % 2 == 0) (void)link::write_some(stream->get(), noise.bytes);
        silent.push_back(stream.take());
      }
      std::this_thread::sleep_for(1ms);
    }
  });
  std::vector<Launch> launches;
  for (int rank = 0; rank < 3; ++rank) {
    launches.push_back(job("strangers", rank, 3));
    launches.back().rendezvous = place;
  }
  check_same(meet(launches));
  strangers.join();
}

}  // namespace
}  // namespace shoal::comm::testing
