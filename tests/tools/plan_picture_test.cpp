// SPDX-License-Identifier: Apache-2.0
// Pictures: logical time, and SVG that is well-formed for every algorithm.
#include "tools/plan/picture.h"

#include <catch2/catch.hpp>

#include "tools/drawing/chart.h"
#include "tools/drawing/svg.h"
#include "tools/plan/arguments.h"
#include "tools/well_formed.h"

using namespace shoal;
using namespace shoal::drawing;
using namespace shoal::plan_tool;
using plan::Collective;
using plan::Op;
using shoal::testing::fault_in;

namespace {

std::vector<plan::Plan> plans(Collective collective, std::string_view name, std::int32_t world, std::int32_t root = 0) {
  const algorithms::Algorithm* algorithm = algorithms::find(collective, name);
  REQUIRE(algorithm != nullptr);
  auto built = plans_of(*algorithm, {.world = {world}, .root = {root}});
  REQUIRE(built.is_ok());
  return built.take();
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("timeline: a ring takes a column a step, and messages arrive a column later") {
  const auto ring = plans(Collective::all_reduce, "ring", 4);
  const auto drawn = timeline(ring, 1000);
  REQUIRE(drawn.is_ok());
  CHECK(drawn->columns == 7);
  CHECK(drawn->boxes.size() == 28);
  CHECK(drawn->arrows.size() == 24);
  for (const Timeline::Arrow& arrow : drawn->arrows) {
    const Timeline::Box &from = drawn->boxes[arrow.from], &to = drawn->boxes[arrow.to];
    CHECK(to.rank == (from.rank + 1) % 4);
    CHECK(to.column == from.column + 1);
    CHECK(to.data == from.data);
  }
}

TEST_CASE("timeline: blocks of an all-to-all are followed through scratch to where they belong") {
  for (const std::string_view name : {"pairwise", "linear", "bruck", "hierarchical"})
    for (const std::int32_t world : {2, 3, 4, 5, 6, 8}) {
      INFO(name << " in a world of " << world);
      const auto all = plans(Collective::all_to_all, name, world);
      const auto drawn = timeline(all, 5000);
      REQUIRE(drawn.is_ok());
      std::set<std::int32_t> arrived;  // origin * world + destination
      for (const Timeline::Box& box : drawn->boxes) {
        if (box.step->target.buffer != plan::Buffer::output) continue;
        for (std::size_t t = 0; t < box.data.size(); ++t) {
          const std::int32_t origin = box.data[t] / world, destination = box.data[t] % world;
          if (destination != box.rank) continue;  // on its way
          CHECK(box.step->target.at(static_cast<std::int32_t>(t), box.iteration) / all[0].chunks == origin);
          arrived.insert(box.data[t]);
        }
      }
      CHECK(arrived.size() == static_cast<std::size_t>(world) * static_cast<std::size_t>(world));
    }
}

TEST_CASE("timeline: more boxes than asked for are refused") {
  const auto ring = plans(Collective::all_reduce, "ring", 4);
  CHECK(timeline(ring, 28).is_ok());
  CHECK_FALSE(timeline(ring, 27).is_ok());
}

TEST_CASE("picture: every algorithm is drawn as well-formed SVG, for worlds 1 to 9, with a head for each message") {
  for (const algorithms::Algorithm& algorithm : algorithms::all())
    for (std::int32_t world = 1; world <= 9; ++world) {
      INFO(plan::name_of(algorithm.collective) << " " << algorithm.name << " in a world of " << world);
      const auto all = plans_of(algorithm, {.world = {world}, .root = {world - 1}});
      if (!all.is_ok()) continue;
      const auto drawn = timeline(*all, 5000);
      REQUIRE(drawn.is_ok());
      const std::string svg = picture(*all, *drawn, "a <title> & more", "");
      REQUIRE(fault_in(svg) == "");
      const std::size_t heads = times(svg, "l-8 -4.2v8.4z");
      CHECK(heads >= drawn->arrows.size());
      CHECK(heads <= drawn->arrows.size() + 2);  // and the legend's
      CHECK(svg.find("<script") == std::string::npos);
      CHECK(svg.find("nan") == std::string::npos);
      CHECK(svg.find("inf") == std::string::npos);
    }
}

TEST_CASE("chart: lines, one dot for each x, and well-formed text") {
  Chart chart{.title = "a < b",
              .subtitle = "",
              .x_title = "bytes",
              .x_text = [](double x) { return fmt::format("{}", x); },
              .y_text = [](double y) { return fmt::format("{}", y); },
              .x_marks = {1, 10, 100},
              .lines = {{"rises", {{1, 1e-6}, {10, 1e-5}, {100, 1e-3}}},
                        {"falls", {{1, 1e-3}, {10, 1e-4}, {100, 1e-5}}},
                        {"stops", {{1, 2e-3}}}}};
  const std::string svg = draw(chart);
  CHECK(fault_in(svg) == "");
  CHECK(times(svg, "<circle") == 3);
  for (const char* name : {">rises<", ">falls<", ">stops<", "a &lt; b"}) CHECK(times(svg, name) >= 1);
  chart.lines.clear();
  CHECK(fault_in(draw(chart)) == "");
}

TEST_CASE("chart: the highest line wins where that is asked for, and charts stand below each other") {
  Chart low{.title = "time",
            .subtitle = "",
            .x_title = "bytes",
            .x_text = [](double x) { return fmt::format("{}", x); },
            .y_text = [](double y) { return fmt::format("{}", y); },
            .x_marks = {1, 2},
            .lines = {{"above", {{1, 10}, {2, 20}}}, {"below", {{1, 1}, {2, 2}}}}};
  Chart high = low;
  high.highest_wins = true;
  const auto winner = [](const Chart& chart) {
    const std::string svg = draw(chart);
    const std::size_t bold = svg.find("font-weight=\"bold\">", svg.find("bytes"));
    return svg.substr(bold, svg.find('<', bold) - bold);
  };
  CHECK(winner(low).find(">below") != std::string::npos);
  CHECK(winner(high).find(">above") != std::string::npos);
  const std::vector<Chart> both = {low, high};
  const std::string svg = draw(both);
  CHECK(fault_in(svg) == "");
  CHECK(times(svg, "<circle") == 4);
  CHECK(times(svg, "<title>time</title>") == 1);
}

TEST_CASE("the checker of these tests sees what is not well-formed") {
  CHECK(fault_in("<svg><g a=\"1\"/></svg>") == "");
  for (const char* text : {"<svg>", "<svg></g>", "<svg a=\"1\" a=\"2\"/>", "<svg a=1/>", "<svg>&</svg>", "<svg/><svg/>", "<svg"})
    CHECK(fault_in(text) != "");
}

TEST_CASE("colours: a tint lies between the colour and white") {
  CHECK(tint("#000000", 0) == "#000000");
  CHECK(tint("#0072B2", 1) == "#ffffff");
  CHECK(tint("#000000", 0.5) == "#808080");
}
