// SPDX-License-Identifier: Apache-2.0
#include "train/search/plan.h"

#include <catch2/catch.hpp>
#include <random>

#include "train/error.h"

namespace shoal::train {
namespace {

using Catch::Matchers::Contains;

SearchCluster cluster_of(std::size_t hosts, std::size_t ranks_per_host, Wire within, Wire nics) {
  return {.name = "",
          .hosts = hosts,
          .ranks_per_host = ranks_per_host,
          .within = within,
          .nics = nics,
          .flops = 1e13,
          .memory_bytes = 1e12};
}
constexpr Wire kFast{2e-6, 3e11}, kSlow{1e-4, 1e8};

// ---- prices ----

TEST_CASE("search: collectives cost what their lower bounds say") {
  const Wire wire{1, 10};  // a second and ten bytes a second
  CHECK(all_reduce_s(400, 4, wire) == Approx(2 * 3 * (1 + 100.0 / 10)));
  CHECK(all_gather_s(400, 4, wire) == Approx(3 * (1 + 100.0 / 10)));
  CHECK(all_to_all_s(400, 4, wire) == Approx(3 * (1 + 25.0 / 10)));
  CHECK(all_reduce_s(400, 1, wire) == 0);
}

// The price of a Megatron-LM block by hand: 4 all-reduces of the block's input over tp, the gradients over dp in one call a step.
TEST_CASE("search: dp 2 x tp 2 of one block on four devices, by hand") {
  const SearchModel model{.layers = 1, .width = 64, .heads = 4, .hidden = 256, .vocabulary = 100, .length = 32, .batch = 8};
  const SearchCluster cluster = cluster_of(1, 4, {1e-5, 1e9}, {});
  const StageCase stage{.slice = {.embedding = false, .blocks = 1, .head = false}, .micro_batches = 2, .in_flight = 3};
  const auto plan = uniform_splits(model, cluster, {1, 4}, {.dp = 2, .tp = 2}, stage);
  REQUIRE(plan);
  const double rows = 4 * 32, parameters = 12 * 64 * 64;
  const double flops = rows * (2 * parameters + 2 * 32 * 64);
  const double one = all_reduce_s(rows / 2 * 64 * 4, 2, cluster.within);
  CHECK(plan->seconds ==
        Approx(3 * flops / (4 * 1e13) + 4 * one + all_reduce_s(0, 2, cluster.within) / 2 + parameters / 2 * 4 / 1e9 / 2));
  CHECK(plan->state_bytes == parameters / 2 * 16);
  CHECK(plan->degrees() == IntraPlan::Degrees{2, 2});
  // In and out of qkv (64, 192), attention (192, 64), proj (64, 64), fc1 (64, 256), fc2 (256, 64), of half of the rows each; by
  // columns where tensor parallelism splits them.
  const double whole = 64 + 64 + 64 + 64, split = 192 + 192 + 64 + 64 + 256 + 256;
  CHECK(plan->activation_bytes == rows / 2 * 4 * (whole + split / 2));
  CHECK(plan->bytes(3) == plan->state_bytes + 3 * plan->activation_bytes);
}

TEST_CASE("search: splits that do not divide are no choices") {
  const SearchModel model{.layers = 1, .width = 48, .heads = 3, .hidden = 192, .vocabulary = 100, .length = 32, .batch = 4};
  const SearchCluster cluster = cluster_of(1, 4, kFast, {});
  const StageCase stage{.slice = {.embedding = false, .blocks = 1, .head = false}, .micro_batches = 2, .in_flight = 1};
  CHECK_FALSE(uniform_splits(model, cluster, {1, 4}, {.dp = 1, .tp = 4}, stage));  // 3 heads
  CHECK_FALSE(uniform_splits(model, cluster, {1, 4}, {.dp = 4, .tp = 1}, stage));  // 2 sequences
  CHECK(uniform_splits(model, cluster, {1, 2}, {.dp = 2, .tp = 1}, stage));
  const IntraProblem intra = intra_problem(model, cluster, logical_mesh(cluster, {1, 4}, 1, 4), stage);
  REQUIRE(intra.operators[0] == "qkv");
  CHECK(intra.choices[0] == std::vector<Splits>{{Split::none, Split::none}, {Split::none, Split::inner}});
}

TEST_CASE("search: wires of a logical mesh: outer groups share the NIC of their hosts") {
  const SearchCluster cluster = cluster_of(2, 4, {1, 100}, {2, 40});
  const auto wires = [&](Mesh mesh, std::size_t outer, std::size_t inner) {
    const LogicalMesh logical = logical_mesh(cluster, mesh, outer, inner);
    return std::array{logical.wire[0].bandwidth_Bps, logical.wire[1].bandwidth_Bps};
  };
  CHECK(wires({1, 4}, 2, 2) == std::array{100.0, 100.0});
  CHECK(wires({2, 4}, 2, 4) == std::array{10.0, 100.0});
  CHECK(wires({2, 4}, 4, 2) == std::array{20.0, 100.0});
  CHECK(wires({2, 4}, 1, 8)[1] == 40.0);
  CHECK(logical_meshes(cluster, {2, 4}).size() == 3);  // 1 x 8, 2 x 4, 4 x 2
  CHECK(logical_meshes(cluster, {1, 1}).size() == 1);
}

// ---- inner level ----

TEST_CASE("search: a block's integer program finds what trying all splits finds") {
  const SearchModel model{.layers = 2, .width = 64, .heads = 4, .hidden = 256, .vocabulary = 256, .length = 64, .batch = 8};
  for (const Wire& wire : {kFast, kSlow, Wire{1e-6, 2e9}}) {
    const SearchCluster cluster = cluster_of(1, 4, wire, {});
    // One axis of four, four splits: 4^5 ways.
    const IntraProblem intra = intra_problem(model, cluster, logical_mesh(cluster, {1, 4}, 1, 4),
                                             {.slice = {.embedding = false, .blocks = 2, .head = false}, .micro_batches = 2});
    OneHotProblem problem = intra.problem;
    problem.budget = std::numeric_limits<double>::infinity();
    REQUIRE(problem.nodes.size() == 5);
    double least = std::numeric_limits<double>::infinity();
    std::size_t ways = 0;
    Choices choices(5, 0);
    for (bool more = true; more; ++ways) {
      least = std::min(least, cost_of(problem, choices));
      more = false;
      for (std::size_t v = 0; v < 5 && !more; ++v) {
        more = ++choices[v] < problem.nodes[v].cost.size();
        if (!more) choices[v] = 0;
      }
    }
    CHECK(ways == 4 * 4 * 4 * 4 * 3);  // attention has no inner split
    CHECK(cost_of(problem, *solve(problem)) == Approx(least).epsilon(1e-9));
  }
}

TEST_CASE("search: where memory is too small for whole weights, some are split, and time is paid") {
  const SearchModel model{.layers = 1, .width = 256, .heads = 4, .hidden = 1024, .vocabulary = 256, .length = 256, .batch = 128};
  SearchCluster cluster = cluster_of(1, 2, {1e-6, 1e10}, {});
  const StageCase stage{.slice = {.embedding = false, .blocks = 1, .head = false}, .micro_batches = 64, .in_flight = 1};
  const auto roomy = best_splits(model, cluster, {1, 2}, stage);
  REQUIRE(roomy);
  CHECK(roomy->degrees() == IntraPlan::Degrees{2, 1});
  cluster.memory_bytes = 0.75 * roomy->bytes(1);
  const auto tight = best_splits(model, cluster, {1, 2}, stage);
  REQUIRE(tight);
  CHECK(tight->state_bytes < roomy->state_bytes);
  CHECK(tight->bytes(1) <= cluster.memory_bytes);
  CHECK(tight->seconds > roomy->seconds);
  cluster.memory_bytes = 1000;
  CHECK_FALSE(best_splits(model, cluster, {1, 2}, stage));
}

// ---- both levels ----

TEST_CASE("search: a wide net of two blocks on a fast mesh is split by tensors") {
  const SearchModel model{
      .layers = 2, .width = 8192, .heads = 64, .hidden = 32768, .vocabulary = 1024, .length = 256, .batch = 1};
  const SearchAnswer answer = search_plan({.model = model, .cluster = cluster_of(1, 4, kFast, {})});
  REQUIRE(answer.best);
  CHECK(grid_of(*answer.best) == Grid{1, 4, 1});
  // Without memory to save, a look-up is repeated rather than summed.
  CHECK(answer.best->stages[0].inner.operators[0] == "embedding");
  CHECK(answer.best->stages[0].inner.splits[0] == Splits{Split::none, Split::none});
  CHECK(answer.best->stages[0].inner.exceptions().front() == 0);
  CHECK(answer.uniform.front().grid == Grid{1, 4, 1});
}

TEST_CASE("search: a deep net over a slow network is a pipeline") {
  const SearchModel model{.layers = 32, .width = 1024, .heads = 16, .hidden = 4096, .vocabulary = 256, .length = 64, .batch = 32};
  SearchCluster cluster = cluster_of(4, 1, {}, kSlow);
  cluster.flops = 1e12;
  const SearchAnswer answer = search_plan({.model = model, .cluster = cluster});
  REQUIRE(answer.best);
  CHECK(grid_of(*answer.best) == Grid{1, 1, 4});
  CHECK(answer.best->micro_batches > 1);
  CHECK(answer.uniform.front().grid == Grid{1, 1, 4});
}

TEST_CASE("search: the best plan is no slower than any uniform one, uses all devices once, and fits") {
  const SearchModel model{.layers = 5, .width = 512, .heads = 8, .hidden = 2048, .vocabulary = 512, .length = 128, .batch = 8};
  for (const double memory : {1e12, 1.5e8, 9e7}) {
    SearchCluster cluster = cluster_of(2, 2, {1e-5, 5e10}, {5e-5, 2e9});
    cluster.memory_bytes = memory;
    const SearchAnswer answer = search_plan({.model = model, .cluster = cluster, .epsilon = 0});
    INFO("memory " << memory);
    if (!answer.best) {
      CHECK(answer.uniform.empty());
      continue;
    }
    for (const UniformPlan& uniform : answer.uniform) CHECK(answer.best->seconds <= uniform.plan.seconds * (1 + 1e-9));
    std::size_t device = 0, unit = 0;
    for (const PlannedStage& stage : answer.best->stages) {
      CHECK(stage.device == device);
      CHECK(stage.first == unit);
      CHECK(stage.bytes <= memory);
      device += stage.mesh.devices();
      unit = stage.last + 1;
    }
    CHECK(device == 4);
    CHECK(unit == model.layers + 2);
  }
}

TEST_CASE("search: micro-batches must divide the batch") {
  CHECK_THROWS_WITH(search_plan({.model = {}, .cluster = cluster_of(1, 1, kFast, {}), .micro_batches = 3}),
                    Contains("--micro-batches 3 do not divide --batch 16"));
}

// ---- cluster files ----

constexpr const char* kFile =
    R"({"name": "n", "hosts": 2, "ranks_per_host": 4, "within": {"latency_s": 5e-6, "bandwidth_Bps": 1e11},
  "nics": {"latency_s": 2e-5, "bandwidth_Bps": 1.25e10}, "device": {"flops": 5e13, "memory_bytes": 8e10}})";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST_CASE("search: what is nested without end is refused, and not printed") {
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  CHECK_THROWS_WITH(parse_search_cluster(deep), Contains("it is not an object"));
  CHECK_THROWS_WITH(parse_search_cluster("{\"hosts\": " + deep + "}"),
                    Contains("hosts is an array: not a number from 1 to 1024"));
  CHECK_THROWS_WITH(parse_search_cluster("{\"hosts\": 1, \"ranks_per_host\": 1, \"name\": {}}"),
                    Contains("name is an object: not a text"));
}

TEST_CASE("search: a cluster file") {
  const SearchCluster cluster = parse_search_cluster(kFile);
  CHECK(cluster.name == "n");
  CHECK(cluster.ranks() == 8);
  CHECK(cluster.within.latency_s == 5e-6);
  CHECK(cluster.nics.bandwidth_Bps == 1.25e10);
  CHECK(cluster.flops == 5e13);
  CHECK(cluster.memory_bytes == 8e10);
}

TEST_CASE("search: cluster files that are none say why") {
  const auto refuses = [](const std::string& text, const std::string& why) {
    CHECK_THROWS_WITH(parse_search_cluster(text), Contains(why));
  };
  refuses("", "it is not JSON");
  refuses("[]", "it is not an object");
  refuses(with(kFile, "\"name\"", "\"title\""), "title is not known");
  refuses(with(kFile, "\"n\"", "7"), "name is 7: not a text");
  refuses(with(kFile, "\"hosts\": 2", "\"hosts\": 0"), "hosts is 0: not a number from 1 to 1024");
  refuses(with(kFile, "\"hosts\": 2", "\"hosts\": 1.5"), "hosts is 1.5: not a whole number");
  refuses(with(kFile, "\"hosts\": 2", "\"hosts\": 1000"), "hosts 1000 of ranks_per_host 4 are more than 1024 ranks");
  refuses(with(kFile, "\"hosts\": 2, ", ""), "hosts is missing");
  refuses(with(kFile, "{\"latency_s\": 5e-6, \"bandwidth_Bps\": 1e11}", "3"), "within is not an object");
  refuses(with(kFile, "5e-6", "-1"), "within.latency_s is -1: not a number from 0");
  refuses(with(kFile, "1.25e10", "\"fast\""), "nics.bandwidth_Bps is \"fast\": not a number from 1");
  refuses(with(kFile, "\"flops\"", "\"flop\""), "device.flop is not known");
  refuses(with(kFile, "\"flops\": 5e13, ", ""), "device.flops is missing");
  CHECK_THROWS_WITH(load_search_cluster("/nonexistent/c.json"), Contains("--cluster: /nonexistent/c.json cannot be read"));
}

}  // namespace
}  // namespace shoal::train
