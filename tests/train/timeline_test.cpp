// SPDX-License-Identifier: Apache-2.0
#include "train/timeline.h"

#include <catch2/catch.hpp>

#include "train/error.h"

namespace shoal::train {
namespace {

using Catch::Matchers::Contains;

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

Timeline timeline_of(ScheduleKind kind, std::size_t chunks = 1) {
  return predict(make_schedule({.kind = kind, .stages = 4, .micro_batches = 4, .chunks = chunks}), {});
}

TEST_CASE("timeline: a row a stage, a bar an action, utilisation in the title") {
  const std::string svg = svg_of(timeline_of(ScheduleKind::gpipe), "gpipe & <4>");
  CHECK_THAT(svg, Contains("<title>gpipe &amp; &lt;4&gt;: utilisation 57.1 %</title>"));
  CHECK(count(svg, ">stage ") == 4);
  CHECK(count(svg, "fill-opacity") == 2 * 4 * 4);
  CHECK(count(svg, ">3</text>") == 2 * 4);  // the last micro-batch's number
  CHECK(count(svg, "backward, input") == 0);
}

TEST_CASE("timeline: the legend names the kinds that are there") {
  const std::string zero = svg_of(timeline_of(ScheduleKind::zero_bubble), "zero-bubble");
  CHECK(count(zero, ">backward, input<") == 1);
  CHECK(count(zero, ">backward, weights<") == 1);
  CHECK(count(zero, ">backward<") == 0);
  CHECK(count(svg_of(timeline_of(ScheduleKind::interleaved, 2), ""), "fill-opacity=\"0.75\"") == 2 * 4 * 4);
}

TEST_CASE("timeline: nothing measured is an empty picture; a path that cannot be written is an error") {
  CHECK_THAT(svg_of({}, "nothing"), Contains("utilisation 100.0 %"));
  CHECK_THROWS_WITH(write_svg({}, "nothing", "/nonexistent/t.svg"), Contains("/nonexistent/t.svg cannot be written"));
}

}  // namespace
}  // namespace shoal::train
