// SPDX-License-Identifier: Apache-2.0
#include "comm/control.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/ranks.h"

namespace shoal::comm::testing {
namespace {

using namespace std::chrono_literals;

std::vector<Result<Agreement>> joined(int world) {
  auto all = join_all(new_id(), ranks_below(world), world);
  for (const auto& one : all) REQUIRE(one.is_ok());
  return all;
}

TEST_CASE("control: a bye is silent, and afterwards nothing is an alarm") {
  auto all = joined(3);
  all[1]->control->bye();
  all[1]->control.reset();
  for (const std::size_t rank : {0U, 2U}) CHECK(watch(*all[rank]->control, 100ms).is_ok());
  all[0]->control->bye();
  all[2]->control.reset();  // without a word: rank 0 has left and does not care
  CHECK(watch(*all[0]->control, 100ms).is_ok());
}

TEST_CASE("control: a connection that ends without bye is a death, known to all others, for good") {
  auto all = joined(4);
  all[2]->control.reset();
  for (const std::size_t rank : {0U, 1U, 3U}) {
    const Status status = wait_for_failure(*all[rank]->control);
    CHECK(show(status) == fmt::format("6 culprit 2: rank 2 (node2, pid {}) died", all[2]->peers[2].pid));
  }
  all[3]->control->announce_abort();
  all[1]->control.reset();
  CHECK(watch(*all[0]->control, 100ms).culprit() == std::optional(Rank{2}));
}

TEST_CASE("control: an abort is told to all others, not to the one who aborts") {
  auto all = joined(3);
  all[1]->control->announce_abort();
  for (const std::size_t rank : {0U, 2U}) {
    const Status status = wait_for_failure(*all[rank]->control);
    CHECK(show(status) == fmt::format("6 culprit 1: rank 1 (node1, pid {}) aborted the communicator", all[1]->peers[1].pid));
  }
  CHECK(watch(*all[1]->control, 50ms).is_ok());
}

TEST_CASE("control: a failure that concerns all passes with its code, text and culprit; a rank's own trouble becomes remote") {
  struct Case {
    Status said;
    std::string heard;
  };
  auto all = joined(2);
  const std::string who = fmt::format("rank 1 (node1, pid {})", all[1]->peers[1].pid);
  const Case cases[] = {
      {Status(Code::timeout, "nothing from rank 0 for 30 s", Rank{0}), "8 culprit 0: nothing from rank 0 for 30 s"},
      {Status(Code::invalid_usage, "mismatch"), "5 culprit -1: mismatch"},
      {Status(Code::remote_error, "rank 7 died", Rank{7}), "6 culprit 7: rank 7 died"},
      {Status(Code::system_error, "mmap: no memory"), "6 culprit 1: " + who + " failed: mmap: no memory"},
      {Status(Code::internal_error, "bug", Rank{0}), "6 culprit 1: " + who + " failed: bug"},
  };
  for (const Case& one : cases) {
    all = joined(2);
    all[1]->control->announce_failure(one.said);
    CHECK(show(wait_for_failure(*all[0]->control)) == one.heard);
    CHECK(watch(*all[1]->control, 20ms).is_ok());
  }
}

TEST_CASE("control: a text of megabytes is cut, not refused") {
  auto all = joined(2);
  all[0]->control->announce_failure(Status(Code::timeout, std::string(3 << 20, 'x')));
  const Status status = wait_for_failure(*all[1]->control);
  CHECK(status.code() == Code::timeout);
  CHECK(status.text() == std::string(2048, 'x'));
}

TEST_CASE("control: the announcement of success is nothing") {
  auto all = joined(2);
  all[0]->control->announce_failure(Status());
  CHECK(watch(*all[1]->control, 50ms).is_ok());
}

TEST_CASE("control: the one who failed still learns of another's death") {
  auto all = joined(3);
  all[0]->control->announce_failure(Status(Code::timeout, "late"));
  CHECK(wait_for_failure(*all[1]->control).text() == "late");
  all[2]->control.reset();
  CHECK(wait_for_failure(*all[0]->control).culprit() == std::optional(Rank{2}));
}

TEST_CASE("control: many threads may use one rank's control at once") {
  auto all = joined(2);
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i)
    workers.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        (void)all[0]->control->progress();
        (void)all[0]->control->wakeup();
        if (round == 100 && i == 0) all[1]->control->announce_abort();
        if (round == 150) all[0]->control->announce_failure(Status(Code::timeout, "t" + std::to_string(i)));
      }
    });
  for (std::thread& worker : workers) worker.join();
  CHECK(wait_for_failure(*all[0]->control).culprit() == std::optional(Rank{1}));
  CHECK(wait_for_failure(*all[1]->control).code() == Code::timeout);
}

// One rank: joins, says "in", then says what progress tells it.
void live(const Process::Say& say, const UniqueId& id, int rank, int world) {
  Result<Agreement> agreement = join(id, rank, world);
  if (!agreement.is_ok()) return say(show(agreement.status()));
  say("in");
  say(show(wait_for_failure(*agreement->control)));
}

TEST_CASE("control: a killed process is a remote error on all others, naming rank, host and pid") {
  const UniqueId id = new_id();
  std::vector<Process> processes;
  for (int rank = 0; rank < 4; ++rank) processes.emplace_back([&, rank](const Process::Say& say) { live(say, id, rank, 4); });
  for (Process& process : processes) REQUIRE(process.line() == "in");
  processes[1].kill();
  for (const std::size_t rank : {0U, 2U, 3U})
    CHECK(processes[rank].line() == fmt::format("6 culprit 1: rank 1 (node1, pid {}) died", processes[1].id()));
}

TEST_CASE("control: a killed process is noticed although a forked child of it lives on") {
  const UniqueId id = new_id();
  Process parent([&](const Process::Say& say) {
    Result<Agreement> agreement = join(id, 0, 2);
    if (!agreement.is_ok()) return say(show(agreement.status()));
    const Process child([](const Process::Say&) { std::this_thread::sleep_for(20s); });
    say(std::to_string(child.id()));
    std::this_thread::sleep_for(20s);
  });
  Result<Agreement> other = join(id, 1, 2);
  REQUIRE(other.is_ok());
  const int child = std::stoi("0" + parent.line());
  parent.kill();
  CHECK(wait_for_failure(*other->control).culprit() == std::optional(Rank{0}));
  if (child > 1) CHECK(::kill(child, SIGKILL) == 0);
}

// Rank 0 makes the id in its own process and says it in hexadecimal.
std::string to_hex(const UniqueId& id) {
  std::string text;
  for (const char byte : id.encode()) text += fmt::format("{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return text;
}
UniqueId from_hex(const std::string& text) {
  std::array<char, UniqueId::kBytes> bytes{};
  for (std::size_t i = 0; i < bytes.size() && 2 * i + 1 < text.size(); ++i)
    bytes[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  Result<UniqueId> id = UniqueId::decode(bytes);
  return id.is_ok() ? id.take() : UniqueId{};
}

void lead(const Process::Say& say, int world, const std::function<void(Control&)>& then) {
  const UniqueId id = new_id();
  say(to_hex(id));
  Result<Agreement> agreement = join(id, 0, world);
  if (!agreement.is_ok()) return say(show(agreement.status()));
  say("in");
  then(*agreement->control);
}

TEST_CASE("control: the death of the process with the root service names its rank") {
  if (!kChildrenMayStartThreads) return;
  Process root([](const Process::Say& say) { lead(say, 3, [](Control& control) { (void)wait_for_failure(control); }); });
  const UniqueId id = from_hex(root.line());
  auto others = join_all(id, {1, 2}, 3);
  REQUIRE(root.line() == "in");
  root.kill();
  for (auto& one : others) {
    REQUIRE(one.is_ok());
    CHECK(show(wait_for_failure(*one->control)) ==
          fmt::format("6 culprit 0: rank 0 (node0, pid {}) died (it made the unique id, at {})", root.id(), id.address()));
  }
}

TEST_CASE("control: the death of the process with the root service during bootstrap is a remote error on all who wait") {
  if (!kChildrenMayStartThreads) return;
  Process root([](const Process::Say& say) { lead(say, 4, [](Control&) {}); });
  const UniqueId id = from_hex(root.line());
  std::thread killer([&] {
    std::this_thread::sleep_for(200ms);
    root.kill();
  });
  for (const auto& one : join_all(id, {1, 2}, 4)) {
    CHECK(one.status().code() == Code::remote_error);
    CHECK(one.status().text().find(id.address()) != std::string_view::npos);
  }
  killer.join();
}

TEST_CASE("control: the process with the root service may leave first; only if its rank said nothing is that a death") {
  if (!kChildrenMayStartThreads) return;
  const bool says_bye = GENERATE(true, false);
  Process root([&](const Process::Say& say) {
    lead(say, 2, [&](Control& control) {
      if (says_bye) control.bye();
      std::exit(0);  // static destruction ends the root service
    });
  });
  const UniqueId id = from_hex(root.line());
  Result<Agreement> other = join(id, 1, 2);
  REQUIRE(other.is_ok());
  REQUIRE(root.line() == "in");
  CHECK(root.line().empty());  // it has ended
  if (says_bye)
    CHECK(watch(*other->control, 200ms).is_ok());
  else
    CHECK(show(wait_for_failure(*other->control)) == fmt::format("6 culprit 0: rank 0 (node0, pid {}) died", root.id()));
}

TEST_CASE("control: a forked child leaves its parent's communicators alone, and may make its own") {
  if (!kChildrenMayStartThreads) return;
  const UniqueId id = new_id();
  auto all = join_all(id, {0, 1}, 2);
  Process child([](const Process::Say& say) {
    auto own = join_all(new_id(), {0, 1}, 2);
    say(own[0].is_ok() && own[1].is_ok() ? "made" : "failed");
    for (auto& one : own)
      if (one.is_ok()) one->control->bye();
    own.clear();
    std::exit(0);
  });
  CHECK(child.line() == "made");
  CHECK(child.line().empty());
  for (auto& one : all) {
    REQUIRE(one.is_ok());
    CHECK(watch(*one->control, 50ms).is_ok());
  }
  all[0]->control->announce_abort();
  CHECK(wait_for_failure(*all[1]->control).culprit() == std::optional(Rank{0}));
}

}  // namespace
}  // namespace shoal::comm::testing
