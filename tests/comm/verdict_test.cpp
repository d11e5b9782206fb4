// SPDX-License-Identifier: Apache-2.0
#include "comm/verdict.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "comm/inquest.h"
#include "comm/ranks.h"

namespace shoal::comm {
namespace {

constexpr int kWorld = 5;

std::string call(std::uint64_t n, const char* what = "100 float32, sum") {
  return "all_reduce #" + std::to_string(n) + " of " + what;
}

// All ranks have ended collective 9 and wait in the tenth for the rank before them.
std::vector<Witness> waiting() {
  std::vector<Witness> all;
  for (int rank = 0; rank < kWorld; ++rank) {
    Report report;
    for (std::uint64_t n = 5; n <= 10; ++n) report.calls.push_back({n, call(n)});
    report.finished = 9;
    report.inside = true;
    report.since_ms = 2000;
    report.doing = call(10) + ", slice 1 of 4, nothing from rank " + std::to_string((rank + kWorld - 1) % kWorld);
    report.waits_for = (rank + kWorld - 1) % kWorld;
    all.push_back({.who = testing::identity(rank), .report = report});
  }
  return all;
}

void leave_outside(Witness& witness) {
  witness.report->calls.pop_back();
  witness.report->inside = false;
  witness.report->doing.clear();
  witness.report->waits_for = -1;
}

const Notice kOwn{Code::timeout, 1, "nothing from rank 1"};

// The text of the verdict; "" for none.
std::string verdict(const std::vector<Witness>& all, Alarm alarm, int accuser = 0, Code code = Code::timeout, int culprit = -2) {
  const std::optional<Notice> found = judge(all, alarm, accuser, kOwn);
  if (!found) return "";
  CHECK(found->code == code);
  if (culprit > -2) CHECK(found->culprit == culprit);
  return found->text;
}

bool has(const std::string& text, const std::string& part) {
  CAPTURE(text, part);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

TEST_CASE("verdict: ranks that wait for somebody slow are no reason to act, unless asked to end it") {
  std::vector<Witness> all = waiting();
  CHECK(verdict(all, Alarm::slow).empty());
  leave_outside(all[3]);
  CHECK(verdict(all, Alarm::slow).empty());
  const std::string text = verdict(all, Alarm::timeout, 0, Code::timeout, 3);
  has(text, "rank 3 (node3, pid ");
  has(text, "has not made all_reduce #10 of 100 float32, sum");
  has(text, "outside the library, its last call, all_reduce #9 of 100 float32, sum, was 2.0 s ago");
  has(text, "ranks 0-2, 4 wait, the longest for 2.0 s");
}

TEST_CASE("verdict: several missing ranks are all listed") {
  std::vector<Witness> all = waiting();
  leave_outside(all[1]);
  leave_outside(all[4]);
  const std::string text = verdict(all, Alarm::timeout, 0, Code::timeout, 1);
  has(text, "rank 1 (node1, pid ");
  has(text, " and rank 4 (node4, pid ");
  has(text, "have not made all_reduce #10");
}

TEST_CASE("verdict: another call is a verdict at once, whatever the alarm, and the smaller camp is odd") {
  for (const Alarm alarm : {Alarm::slow, Alarm::mismatch, Alarm::broken, Alarm::timeout}) {
    std::vector<Witness> all = waiting();
    all[2].report->calls.back().call = call(10, "7 int8, max");
    leave_outside(all[4]);
    const std::string text = verdict(all, alarm, 0, Code::invalid_usage, 2);
    has(text, "rank 2 (node2, pid ");
    has(text, "made all_reduce #10 of 7 int8, max");
    has(text, "ranks 0, 1, 3 made all_reduce #10 of 100 float32, sum");
    has(text, "rank 4 not there yet");
  }
}

TEST_CASE("verdict: the first call that differs counts, also where some ranks remember less") {
  std::vector<Witness> all = waiting();
  all[0].report->calls[1].call = call(6, "1 int8, sum");  // #6
  all[0].report->calls[4].call = call(9, "2 int8, sum");
  all[4].report->calls.erase(all[4].report->calls.begin(), all[4].report->calls.begin() + 3);
  const std::string text = verdict(all, Alarm::mismatch, 3, Code::invalid_usage, 0);
  has(text, "made all_reduce #6 of 1 int8, sum");
  has(text, "ranks 1-3 made all_reduce #6 of 100 float32, sum");
}

TEST_CASE("verdict: of two equal camps the one with the lowest rank is taken to be right") {
  std::vector<Witness> all = waiting();
  all.resize(2);
  all[1].report->calls.back().call = call(10, "7 int8, max");
  verdict(all, Alarm::slow, 0, Code::invalid_usage, 1);
}

TEST_CASE("verdict: who does not answer is named when it is time, with what is known of it") {
  std::vector<Witness> all = waiting();
  all[3].report.reset();
  CHECK(verdict(all, Alarm::slow).empty());
  has(verdict(all, Alarm::timeout, 0, Code::remote_error, 3), "does not answer: stopped, or cut off from the network");
  all[3].condition = "it is stopped by a signal or a debugger";
  const std::string text = verdict(all, Alarm::broken, 0, Code::remote_error, 3);
  has(text, "rank 3 (node3, pid ");
  has(text, "does not answer: it is stopped by a signal or a debugger (all_reduce #10 of 100 float32, sum)");
}

TEST_CASE("verdict: a rank that left in order is to blame only if the others want more of it") {
  std::vector<Witness> all = waiting();
  all[2].left = true;
  all[2].report = Report{.finished = 10};
  CHECK(verdict(all, Alarm::slow).empty());
  all[2].report->finished = 9;
  has(verdict(all, Alarm::slow, 0, Code::invalid_usage, 2), "left the communicator after 9 collectives");
}

TEST_CASE("verdict: transfers whose sizes differ, ended or not") {
  std::vector<Witness> all = waiting();
  for (Witness& each : all) leave_outside(each);
  all[1].report->transfers = {{3, true, 2, 80, false}};
  all[3].report->transfers = {{1, false, 2, 96, true}, {1, false, 1, 5, false}};
  const std::string text = verdict(all, Alarm::mismatch, 3, Code::invalid_usage, 1);
  has(text, "rank 1 (node1, pid ");
  has(text, "sends 80 bytes to rank 3 (node3, pid ");
  has(text, "which receives 96");
  all[3].report->transfers[0].bytes = 80;
  CHECK(verdict(all, Alarm::slow).empty());
}

TEST_CASE("verdict: lengths of an all-to-all-v that do not meet") {
  std::vector<Witness> all = waiting();
  for (Witness& each : all) {
    each.report->lengths_of = 10;
    each.report->sends = {1, 1, 1, 1, 1};
    each.report->receives = {1, 1, 1, 1, 1};
  }
  CHECK(verdict(all, Alarm::slow).empty());
  all[4].report->sends[2] = 6;
  const std::string text = verdict(all, Alarm::slow, 0, Code::invalid_usage, 4);
  has(text, "sends 6 elements to rank 2 (node2, pid ");
  has(text, "which expects 1");
  all[4].report->lengths_of = 9;  // of an earlier call: nothing to compare
  CHECK(verdict(all, Alarm::slow).empty());
}

TEST_CASE("verdict: a circle of waiting ranks is spelled out, and a chain ends at its culprit") {
  std::vector<Witness> all = waiting();
  for (Witness& each : all) each.report->calls.clear();  // transfers only
  for (int rank = 0; rank < kWorld; ++rank)
    all[static_cast<std::size_t>(rank)].report->transfers = {
        {all[static_cast<std::size_t>(rank)].report->waits_for, false, 1, 4, true}};
  has(verdict(all, Alarm::timeout, 0, Code::timeout), "wait for each other in a circle: rank 0 for rank 4");
  all[3].report->inside = false;
  all[3].report->waits_for = -1;
  const std::string text = verdict(all, Alarm::timeout, 0, Code::timeout, 3);
  has(text, "rank 3 (node3, pid ");
  has(text, "is outside the library; waiting: rank 0 for rank 4");
}

TEST_CASE("verdict: if nobody is to blame, the rank with the alarm is believed") {
  std::vector<Witness> all = waiting();
  CHECK(verdict(all, Alarm::mismatch, 0, Code::timeout, 1) == kOwn.text);
}

TEST_CASE("verdict: rank lists") {
  CHECK(ranks_text({}).empty());
  CHECK(ranks_text({3}) == "3");
  CHECK(ranks_text({3, 4}) == "3, 4");
  CHECK(ranks_text({0, 1, 2, 5, 7, 8}) == "0-2, 5, 7, 8");
}

TEST_CASE("inquest: ends when all have answered or the time is up, and takes the gravest alarm") {
  const auto now = Inquest::Clock::now();
  const std::vector<link::PeerIdentity> peers = {testing::identity(0), testing::identity(1), testing::identity(2)};
  Inquest inquest;
  CHECK_FALSE(inquest.running());
  REQUIRE(inquest.raise({Alarm::slow, 0, 4, kOwn}, now));
  CHECK_FALSE(inquest.raise({Alarm::timeout, 1, 5, kOwn}, now));
  const std::uint32_t number = inquest.inquiry().number;
  CHECK(inquest.inquiry().sequence == 4);
  inquest.answer({.inquiry = number, .rank = 0});
  inquest.answer({.inquiry = number - 1, .rank = 1});  // of an earlier one
  inquest.left(2, 3);
  CHECK_FALSE(inquest.over(3, now));
  CHECK(inquest.over(3, now + Inquest::kAnswerTime));
  const std::optional<Notice> found =
      inquest.conclude(peers, now + Inquest::kAnswerTime, [](const link::PeerIdentity&) { return std::string("asleep"); });
  REQUIRE(found);
  CHECK(found->culprit == 1);
  has(found->text, "asleep");
  CHECK_FALSE(inquest.running());

  REQUIRE(inquest.raise({Alarm::slow, 0, 4, kOwn}, now));
  inquest.answer({.inquiry = inquest.inquiry().number, .rank = 0});
  inquest.answer({.inquiry = inquest.inquiry().number, .rank = 1});
  CHECK(inquest.over(3, now));
  CHECK_FALSE(inquest.conclude(peers, now, [](const link::PeerIdentity&) { return std::string(); }));
}

TEST_CASE("inquest: a mismatch that no report explains is asked about again, until one does or the time is up") {
  const auto begin = Inquest::Clock::now();
  const auto nothing_known = [](const link::PeerIdentity&) { return std::string(); };
  const std::vector<link::PeerIdentity> peers = {testing::identity(0), testing::identity(1), testing::identity(2)};
  const auto call = [](std::uint32_t inquiry, std::int32_t rank, const char* text) {
    return Report{.inquiry = inquiry, .rank = rank, .calls = {{7, text}}};
  };
  const bool explained = GENERATE(true, false);
  Inquest inquest;
  REQUIRE(inquest.raise({Alarm::mismatch, 0, 7, kOwn}, begin));
  // Rank 2 has shown another call, but has not noted it yet.
  const std::uint32_t first = inquest.inquiry().number;
  inquest.answer(call(first, 0, "all_reduce #7"));
  inquest.answer(call(first, 1, "all_reduce #7"));
  inquest.answer({.inquiry = first, .rank = 2});
  REQUIRE(inquest.over(3, begin));
  CHECK_FALSE(inquest.conclude(peers, begin, nothing_known));
  REQUIRE(inquest.running());
  CHECK(inquest.wake() == begin + Inquest::kPause);
  CHECK_FALSE(inquest.over(3, begin));  // a pause
  CHECK_FALSE(inquest.ask_again(begin));

  const auto later = begin + Inquest::kPause;
  REQUIRE(inquest.ask_again(later));
  CHECK_FALSE(inquest.ask_again(later));
  const std::uint32_t second = inquest.inquiry().number;
  CHECK(second != first);
  CHECK(inquest.inquiry().sequence == 7);
  inquest.answer(call(second, 0, "all_reduce #7"));
  inquest.answer({.inquiry = first, .rank = 2});  // too late
  CHECK_FALSE(inquest.over(3, later));            // rank 1 was heard in the first round only
  if (explained) {
    inquest.answer(call(second, 1, "all_reduce #7"));
    inquest.answer(call(second, 2, "broadcast #7"));
    REQUIRE(inquest.over(3, later));
    const std::optional<Notice> found = inquest.conclude(peers, later, nothing_known);
    REQUIRE(found);
    CHECK(found->culprit == 2);
    has(found->text, "made broadcast #7");
  } else {
    const auto end = begin + Inquest::kAnswerTime;
    CHECK(inquest.wake() == end);
    REQUIRE(inquest.over(3, end));
    const std::optional<Notice> found = inquest.conclude(peers, end, nothing_known);
    REQUIRE(found);
    CHECK(found->text == kOwn.text);
  }
  CHECK_FALSE(inquest.running());
}

TEST_CASE("inquest: a graver alarm that joins a mismatch between two rounds ends as it would by itself") {
  const auto begin = Inquest::Clock::now();
  const std::vector<link::PeerIdentity> peers = {testing::identity(0), testing::identity(1)};
  const auto nothing_known = [](const link::PeerIdentity&) { return std::string(); };
  Inquest inquest;
  REQUIRE(inquest.raise({Alarm::mismatch, 0, 7, {Code::invalid_usage, 1, "another call"}}, begin));
  for (const std::int32_t rank : {0, 1}) inquest.answer({.inquiry = inquest.inquiry().number, .rank = rank});
  CHECK_FALSE(inquest.conclude(peers, begin, nothing_known));
  CHECK_FALSE(inquest.raise({Alarm::broken, 1, 7, kOwn}, begin));
  REQUIRE(inquest.ask_again(begin + Inquest::kPause));
  for (const std::int32_t rank : {0, 1}) inquest.answer({.inquiry = inquest.inquiry().number, .rank = rank});
  REQUIRE(inquest.over(2, begin + Inquest::kPause));
  const std::optional<Notice> found = inquest.conclude(peers, begin + Inquest::kPause, nothing_known);
  REQUIRE(found);
  CHECK(found->text == kOwn.text);
  CHECK_FALSE(inquest.running());
}

}  // namespace
}  // namespace shoal::comm
