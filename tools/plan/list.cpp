// SPDX-License-Identifier: Apache-2.0
// shoal-plan list: the table of algorithms, and what their plans declare.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/plan/arguments.h"

namespace shoal::plan_tool {
namespace {

using nlohmann::ordered_json;
using namespace plan;

// What all ranks' plans declare together; the plan of rank 0 stands for what is the same on all.
struct Row {
  const algorithms::Algorithm* algorithm;
  Plan plan;
  std::int32_t scratch = 0;
};

Row row_of(const algorithms::Algorithm& algorithm, std::int32_t world, std::int32_t group) {
  Row row{&algorithm, {}, 0};
  Request request{.collective = algorithm.collective, .world = {world}, .rank = {}, .root = {}, .group = group};
  row.plan = algorithm.build(request);
  for (; request.rank.value < world && row.plan.refusal.empty(); ++request.rank.value)
    row.scratch = std::max(row.scratch, algorithm.build(request).scratch);
  return row;
}

std::string_view order_name(Order order) { return order == Order::butterfly ? "doubling" : "any"; }

void print(const std::vector<Row>& rows, std::int32_t world) {
  fmt::print("{} algorithms; columns for a world of {}\n\n", rows.size(), world);
  fmt::print("{:14} {:25} {:8} {:>7} {:3} {:4} {:>7} {:>6}  {}\n", "collective", "algorithm", "order", "credits", "ref", "pipe",
             "scratch", "shared", "summary");
  for (const Row& row : rows) {
    fmt::print("{:14} {:25} ", plan::name_of(row.algorithm->collective), row.algorithm->name);
    if (row.plan.refusal.empty())
      fmt::print("{:8} {:>7} {:3} {:4} {:>7} {:>6}  {}\n", order_name(row.plan.order), row.plan.credits,
                 row.plan.by_reference ? "yes" : "-", row.plan.pipelined ? "yes" : "-", row.scratch, row.plan.shared,
                 row.algorithm->summary);
    else
      fmt::print("{:40}  {} (no plan: {})\n", "-", row.algorithm->summary, row.plan.refusal);
  }
  fmt::print(
      "\norder: which additions make a sum (doubling: those of recursive doubling, whatever the algorithm); credits: messages\n"
      "that a link must hold; ref: sends may refer to the sender's memory; pipe: time falls with the length of a slice;\n"
      "scratch, shared: most slots of a rank\n");
}

ordered_json json_of(const Row& row) {
  ordered_json json = {{"collective", plan::name_of(row.algorithm->collective)},
                       {"algorithm", row.algorithm->name},
                       {"summary", row.algorithm->summary}};
  if (!row.plan.refusal.empty()) {
    json["refusal"] = row.plan.refusal;
    return json;
  }
  json.update({{"order", order_name(row.plan.order)},
               {"credits", row.plan.credits},
               {"by_reference", row.plan.by_reference},
               {"pipelined", row.plan.pipelined},
               {"chunks", row.plan.chunks},
               {"scratch", row.scratch},
               {"shared", row.plan.shared}});
  return json;
}

}  // namespace

Ending list(const Words& words) {
  Target target;
  bool json = false;
  cli::CommandLine line = command_line("list", "the algorithms, and what their plans are like.", "[--collective C] [OPTIONS]");
  line.value("-c,--collective", "Only this one's", "NAME", [&target](const std::string& text) {
    target.collective = collective_from(text);
    return target.collective ? "" : "is no collective: all_reduce, reduce, broadcast, ... (shoal-plan list)";
  });
  line.integer("-n,--world", target.world, 1, "Ranks, for what depends on them", 4096);
  line.integer("--group", target.group, 0, "Ranks of a host; 0: nothing is known");
  line.flag("--json", json, "As JSON");
  if (const auto ending = parse(line, words)) return *ending;

  std::vector<Row> rows;
  for (const algorithms::Algorithm& each : algorithms::all())
    if (!target.collective || each.collective == *target.collective)
      rows.push_back(row_of(each, target.world, std::max(target.group, 0)));
  if (!json) {
    print(rows, target.world);
    return {};
  }
  ordered_json all = ordered_json::array();
  for (const Row& row : rows) all.push_back(json_of(row));
  fmt::print("{}\n", all.dump(2));
  return {};
}

}  // namespace shoal::plan_tool
