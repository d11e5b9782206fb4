// SPDX-License-Identifier: Apache-2.0
#include "comm/dump.h"

#include <catch2/catch.hpp>

namespace shoal::comm {
namespace {

Dump example() {
  Dump dump;
  dump.who.rank = {2};
  dump.who.host = "node \"7\"\n";
  dump.who.pid = 4121;
  dump.world = 5;
  dump.communicator = 0xfedcba9876543210ULL;
  dump.written_ns = 1'700'000'000'123'456'789;
  dump.failure = "rank 3 died";
  dump.report.calls = {{7, "all_reduce #7 of 3 float32, sum"}};
  dump.report.finished = 6;
  dump.report.inside = true;
  dump.report.since_ms = 1234;
  dump.report.doing = "all_reduce #7 of 3 float32, sum, slice 1 of 1, nothing from rank 3 (tcp)";
  dump.report.waits_for = 3;
  dump.report.transfers = {{1, true, 4, 80, true}, {0, false, 1, 0, false}};
  dump.report.lengths_of = 2;
  dump.report.sends = {1, 2, 3, 4, 5};
  dump.report.receives = {0, 0, 0, 0, 9};
  dump.operations = {{1, 0, "2 transfers of 80 bytes", 80, "", "done", 5, 9},
                     {2, 7, "all_reduce #7 of 3 float32, sum", 12, "ring", "running", 10, 0}};
  return dump;
}

TEST_CASE("dump: what is written is read back") {
  const Dump dump = example();
  const Result<Dump> back = dump_from_json(to_json(dump));
  INFO(back.status().text());
  REQUIRE(back.is_ok());
  CHECK(back->who.rank.value == 2);
  CHECK(back->who.host == dump.who.host);
  CHECK(back->who.pid == 4121);
  CHECK(back->world == 5);
  CHECK(back->communicator == dump.communicator);
  CHECK(back->written_ns == dump.written_ns);
  CHECK(back->failure == dump.failure);
  CHECK(back->report == dump.report);
  CHECK(back->operations == dump.operations);
}

TEST_CASE("dump: a text that is no dump is refused with a reason") {
  const auto refusal = [](const std::string& text) {
    const Result<Dump> dump = dump_from_json(text);
    REQUIRE_FALSE(dump.is_ok());
    CHECK(dump.status().code() == Code::invalid_argument);
    return std::string(dump.status().text());
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has(refusal(""), "no dump of a flight recorder"));
  CHECK(has(refusal("{}"), "format"));
  CHECK(has(refusal("[1,2"), "no dump of a flight recorder"));
  CHECK(has(refusal(R"({"format":"shoal flight 9"})"), "shoal flight 9"));
  std::string wrong_rank = to_json(example());
  wrong_rank.replace(wrong_rank.find("\"rank\": 2"), 9, "\"rank\": 5");
  CHECK(has(refusal(wrong_rank), "rank 5 of 5"));
  std::string cut = to_json(example());
  cut.resize(cut.size() / 2);
  CHECK(has(refusal(cut), "no dump of a flight recorder"));
}

TEST_CASE("dump: a path that cannot be written is named") {
  const Status status = write_dump("/nonexistent/directory/dump", example());
  CHECK(status.code() == Code::system_error);
  CHECK(status.text().find("/nonexistent/directory/dump") != std::string::npos);
}

}  // namespace
}  // namespace shoal::comm
