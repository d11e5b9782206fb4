// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/memory_plan.h"

#include <catch2/catch.hpp>

#include "train/commands/quantities.h"
#include "train/error.h"

namespace shoal::train {
namespace {

using Catch::Matchers::Contains;

constexpr std::uint64_t kGB = 1'000'000'000;

TEST_CASE("memory plan: 7.5 billion parameters over 64 ranks, by class") {
  const std::uint64_t y = 7'500'000'000;
  CHECK(state_bytes(0, y, 64) == StateBytes{15 * kGB, 15 * kGB, 90 * kGB});
  CHECK(state_bytes(1, y, 64) == StateBytes{15 * kGB, 15 * kGB, 1'406'250'000});
  CHECK(state_bytes(2, y, 64) == StateBytes{15 * kGB, 234'375'000, 1'406'250'000});
  CHECK(state_bytes(3, y, 64) == StateBytes{234'375'000, 234'375'000, 1'406'250'000});
  CHECK(state_bytes(0, y, 64).total() == 120 * kGB);
  CHECK(state_bytes(1, y, 64).total() == 31'406'250'000);
  CHECK(state_bytes(2, y, 64).total() == 16'640'625'000);
  CHECK(state_bytes(3, y, 64).total() == 1'875'000'000);
}

TEST_CASE("memory plan: bytes a parameter and the largest model of 64 ranks of 80 GB") {
  const double per[] = {16, 4.1875, 2.21875, 0.25};
  // floor(80e9 / per), but for padding: ZeRO-2's shards round up, and two parameters less fit.
  const std::uint64_t largest[] = {5'000'000'000, 19'104'477'611, 36'056'338'026, 320'000'000'000};
  for (const int stage : kZeroStages) {
    CHECK(bytes_per_parameter(stage, 64) == per[stage]);
    CHECK(largest_model(stage, 80 * kGB, 64) == largest[stage]);
  }
}

TEST_CASE("memory plan: the largest model fits, one parameter more does not") {
  for (const int stage : kZeroStages)
    for (const std::uint64_t world : {1, 2, 3, 7, 64, 1000})
      for (const std::uint64_t memory : {0, 1, 15, 16, 17, 1000, 123'457, 1'000'000}) {
        const std::uint64_t most = largest_model(stage, memory, world);
        INFO("stage " << stage << ", world " << world << ", memory " << memory);
        CHECK(state_bytes(stage, most, world).total() <= memory);
        CHECK(state_bytes(stage, most + 1, world).total() > memory);
      }
}

TEST_CASE("memory plan: a step sends twice the parameters, three times in stage 3, (N-1)/N of it") {
  for (const int stage : kZeroStages) {
    const std::uint64_t times = stage == 3 ? 3 : 2;
    CHECK(sent_elements(stage, 6400, 64) == times * 6300);
    CHECK(sent_elements(stage, 6401, 64) == times * 63 * 101);
    CHECK(sent_elements(stage, 6400, 1) == 0);
  }
}

TEST_CASE("quantities: whole numbers as people write them") {
  CHECK(count_from("--n", "7.5e9") == 7'500'000'000);
  CHECK(count_from("--n", "7.5B") == 7'500'000'000);
  CHECK(count_from("--n", "350M") == 350'000'000);
  CHECK(count_from("--n", "12") == 12);
  CHECK(bytes_from("--m", "80GB") == 80 * kGB);
  CHECK(bytes_from("--m", "80GiB") == 85'899'345'920);
  CHECK(bytes_from("--m", "1.5KiB") == 1536);
  for (const char* text : {"", "x", "B", "-1", "0", "1.5", "nan", "inf", "1e16", "12 M", "12Q"})
    CHECK_THROWS_WITH(count_from("--n", text), Contains("--n: " + std::string(text) + " is not"));
  for (const char* text : {"", "80G", "GB", "-1GB", "0.5B", "1e9GB"})
    CHECK_THROWS_WITH(bytes_from("--m", text), Contains("--m: " + std::string(text) + " is not"));
  CHECK(count_text(7'500'000'000) == "7.5 B");
  CHECK(count_text(19'104'477'611) == "19.1 B");
  CHECK(count_text(320'000'000'000) == "320 B");
  CHECK(bytes_text(1'875'000'000) == "1.88 GB");
  CHECK(bytes_text(120 * kGB) == "120 GB");
  CHECK(bytes_text(999) == "999 B");
}

}  // namespace
}  // namespace shoal::train
