// SPDX-License-Identifier: Apache-2.0
// shoal-train search: how to split the training of a transformer over a cluster. Computes only; rank 0 alone.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "train/commands/quantities.h"
#include "train/commands/subcommand.h"
#include "train/commands/validators.h"
#include "train/search/plan.h"

namespace shoal::train {
namespace {

constexpr const char* kFooter =
    "Example:\n"
    "  shoal-train search --cluster cluster.json --layers 24 --width 1024 --heads 16 --length 1024 --batch 64\n"
    "\n"
    "The cluster file and what is priced are in docs/training/search.md.";

struct Question {
  SearchQuestion search;
  std::string cluster, precision = "fp32";
  std::size_t show = 5;
  bool json = false;
};

std::string milliseconds(double seconds) { return fmt::format("{:.4g} ms", seconds * 1e3); }
std::string memory(double bytes) { return bytes_text(static_cast<std::uint64_t>(bytes)); }

std::string units_text(const PlannedStage& stage, const SearchModel& model) {
  const std::size_t head = model.layers + 1;
  const std::size_t first = std::max<std::size_t>(stage.first, 1), last = std::min(stage.last, model.layers);
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (stage.first == 0) add("embedding");
  if (first == last) add(fmt::format("block {}", first - 1));
  if (first < last) add(fmt::format("blocks {}-{}", first - 1, last - 1));
  if (stage.last == head) add("head");
  return text;
}

std::string ranks_text(const PlannedStage& stage) {
  const std::size_t devices = stage.mesh.devices();
  return devices == 1 ? fmt::format("rank {}", stage.device)
                      : fmt::format("ranks {}-{}", stage.device, stage.device + devices - 1);
}

std::string splits_text(const IntraPlan& plan) {
  if (const auto degrees = plan.degrees()) {
    std::string text = fmt::format("dp {} x tp {}", degrees->dp, degrees->tp);
    for (const std::size_t v : plan.exceptions()) text += fmt::format(", {} {}", plan.operators[v], text_of(plan.splits[v]));
    return text;
  }
  std::string text = fmt::format("mesh {} x {}:", plan.mesh.size[0], plan.mesh.size[1]);
  for (std::size_t v = 0; v < plan.operators.size(); ++v)
    text += fmt::format("{} {} {}", v == 0 ? "" : ",", plan.operators[v], text_of(plan.splits[v]));
  return text;
}

std::string grid_text(const Grid& grid) { return fmt::format("dp {} x tp {} x pp {}", grid.dp, grid.tp, grid.pp); }

std::string command_of(const Question& question, const UniformPlan& uniform) {
  const SearchModel& m = question.search.model;
  const Grid& g = uniform.grid;
  std::string command = fmt::format(
      "shoal-run -n {} shoal-train hybrid --dp {} --tp {} --pp {} --micro-batches {} --layers {} --width {} --heads {} --hidden "
      "{} "
      "--vocabulary {} --length {} --batch {}",
      g.dp * g.tp * g.pp, g.dp, g.tp, g.pp, uniform.plan.micro_batches, m.layers, m.width, m.heads, m.hidden, m.vocabulary,
      m.length, m.batch);
  if (question.precision != "fp32") command += " --precision " + question.precision;
  if (g.pp == 1) return command;
  command += " --split ";
  for (const PlannedStage& stage : uniform.plan.stages)
    command += fmt::format("{}{}", &stage == uniform.plan.stages.data() ? "" : ",", stage.last - stage.first + 1);
  return command;
}

void print_plan(const Plan& plan, const SearchModel& model) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const PlannedStage& stage = plan.stages[s];
    fmt::print("  stage {}: {} on {}: {}; {} a micro-batch, {} a rank\n", s, units_text(stage, model), ranks_text(stage),
               splits_text(stage.inner), milliseconds(stage.seconds), memory(stage.bytes));
  }
}

void print_text(const Question& question, const SearchAnswer& answer) {
  const SearchModel& model = question.search.model;
  const SearchCluster& cluster = question.search.cluster;
  const Plan& best = *answer.best;
  fmt::print("{}{}{} of {} ranks, for {} blocks of width {}, {} sequences of {} tokens a step\n", cluster.name,
             cluster.name.empty() ? "" : ": ", cluster.hosts == 1 ? "1 host" : fmt::format("{} hosts", cluster.hosts),
             cluster.ranks_per_host, model.layers, model.width, model.batch, model.length);
  const auto grid = grid_of(best);
  fmt::print("best plan{}: {} stage{}, {} micro-batches, {} a step\n", grid ? ", " + grid_text(*grid) : "", best.stages.size(),
             best.stages.size() == 1 ? "" : "s", best.micro_batches, milliseconds(best.seconds));
  print_plan(best, model);
  if (answer.uniform.empty()) {
    fmt::print("no uniform plan fits: shoal-train hybrid cannot run this\n");
    return;
  }
  fmt::print("uniform plans, the fastest {} of {}:\n", std::min(question.show, answer.uniform.size()), answer.uniform.size());
  for (std::size_t u = 0; u < std::min(question.show, answer.uniform.size()); ++u) {
    const auto& [uniform, plan] = answer.uniform[u];
    const auto most = std::ranges::max_element(plan.stages, {}, &PlannedStage::bytes);
    fmt::print("  {:<24}{:>4} micro-batches {:>12} a step {:>10} a rank\n", grid_text(uniform), plan.micro_batches,
               milliseconds(plan.seconds), memory(most->bytes));
  }
  fmt::print("{}:\n  {}\n", grid == answer.uniform.front().grid ? "to run it" : "to run the fastest of these",
             command_of(question, answer.uniform.front()));
}

nlohmann::json json_of(const Plan& plan) {
  nlohmann::json json = {{"micro_batches", plan.micro_batches}, {"step_s", plan.seconds}};
  for (const PlannedStage& stage : plan.stages) {
    nlohmann::json splits;
    for (std::size_t v = 0; v < stage.inner.operators.size(); ++v)
      splits[stage.inner.operators[v]] = text_of(stage.inner.splits[v]);
    nlohmann::json one = {{"first_unit", stage.first},  {"last_unit", stage.last},
                          {"first_rank", stage.device}, {"ranks", stage.mesh.devices()},
                          {"hosts", stage.mesh.hosts},  {"logical_mesh", stage.inner.mesh.size},
                          {"splits", splits},           {"micro_batch_s", stage.seconds},
                          {"bytes", stage.bytes}};
    if (const auto degrees = stage.inner.degrees()) {
      one["dp"] = degrees->dp;
      one["tp"] = degrees->tp;
    }
    json["stages"].push_back(one);
  }
  return json;
}

void print_json(const Question& question, const SearchAnswer& answer) {
  nlohmann::json json = {{"best", json_of(*answer.best)}, {"uniform", nlohmann::json::array()}};
  for (const UniformPlan& uniform : answer.uniform) {
    nlohmann::json one = json_of(uniform.plan);
    one["dp"] = uniform.grid.dp;
    one["tp"] = uniform.grid.tp;
    one["pp"] = uniform.grid.pp;
    one["command"] = command_of(question, uniform);
    json["uniform"].push_back(one);
  }
  fmt::print("{}\n", json.dump(2));
}

Exit run(const CLI::App& app, Question question, Seat seat) {
  SearchModel& model = question.search.model;
  if (app.count("--hidden") == 0) model.hidden = 4 * model.width;
  if (question.precision == "bf16") model.bytes = 2;
  if (model.width % model.heads != 0)
    throw failure(Exit::usage, "--width {} does not divide by --heads {}", model.width, model.heads);
  question.search.cluster = load_search_cluster(question.cluster);
  if (seat.rank != 0) return Exit::ok;
  const SearchAnswer answer = search_plan(question.search);
  if (!answer.best)
    throw failure(Exit::usage, "--cluster: no plan fits {} of memory a rank", memory(question.search.cluster.memory_bytes));
  (question.json ? print_json : print_text)(question, answer);
  return Exit::ok;
}

}  // namespace

Subcommand add_search(CLI::App& program) {
  auto question = std::make_shared<Question>();
  CLI::App* app =
      program.add_subcommand("search", "Search for the fastest way of splitting a transformer's training over a cluster");
  app->footer(kFooter);
  const auto count = [&](const char* name, std::size_t& value, const char* help, std::uint64_t from, std::uint64_t up_to) {
    app->add_option(name, value, help)->check(whole(from, up_to))->capture_default_str();
  };
  SearchModel& model = question->search.model;
  app->add_option("--cluster", question->cluster, "File of the cluster, JSON")->required();
  count("--layers", model.layers, "Transformer blocks", 1, 1000);
  count("--width", model.width, "Values of a token", 1, 1 << 20);
  count("--heads", model.heads, "Attention heads", 1, 1024);
  count("--hidden", model.hidden, "Values of a block's GELU layer; 4 x width unless given", 1, 1 << 22);
  count("--vocabulary", model.vocabulary, "Rows of the embedding's table", 1, 1 << 20);
  count("--length", model.length, "Tokens of a sequence", 1, 1 << 24);
  count("--batch", model.batch, "Sequences a step, of all ranks together", 1, 1 << 20);
  app->add_option("--precision", question->precision, "fp32, or bf16: of what travels; the state is 16 bytes a parameter in both")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  app->add_option("--micro-batches", question->search.micro_batches, "Of a step; the best divisor of the batch unless given")
      ->check(whole(1, 1 << 20));
  count("--groups", question->search.groups, "Blocks are gathered in so many groups at most, which stay together", 1, 64);
  count("--show", question->show, "Uniform plans to print", 0, 1000);
  app->add_flag("--json", question->json, "Print JSON");
  return {.app = app, .run = [app, question](Seat seat) { return run(*app, *question, seat); }};
}

}  // namespace shoal::train
