// SPDX-License-Identifier: Apache-2.0
// shoal-train plan-memory: what the stages of ZeRO need on each rank, and the largest model that they fit. Computes only.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "train/commands/quantities.h"
#include "train/commands/subcommand.h"
#include "train/commands/validators.h"
#include "train/parallel/memory_plan.h"

namespace shoal::train {
namespace {

constexpr const char* kFooter =
    "Example:\n"
    "  shoal-train plan-memory --parameters 7.5e9 --gpu-memory 80GB --world 64\n"
    "\n"
    "Mixed precision with Adam: 2 bytes a weight, 2 a gradient, 12 of optimiser state. Activations come on top.";

struct Question {
  std::string parameters, memory;
  std::uint64_t world = 1;
  bool json = false;
};

std::string name_of(int stage) { return stage == 0 ? "data" : fmt::format("ZeRO-{}", stage); }

void print_table(std::uint64_t parameters, std::uint64_t memory, std::uint64_t world) {
  fmt::print("{} parameters over {} ranks of {}: bytes a rank\n", count_text(parameters), world, bytes_text(memory));
  fmt::print("{:<8}{:>12}{:>12}{:>12}{:>12}  {:<6}{:>14}{:>16}{:>14}\n", "", "parameters", "gradients", "optimizer", "together",
             "fits", "bytes/param", "largest model", "sent a step");
  for (const int stage : kZeroStages) {
    const StateBytes bytes = state_bytes(stage, parameters, world);
    fmt::print("{:<8}{:>12}{:>12}{:>12}{:>12}  {:<6}{:>14}{:>16}{:>14}\n", name_of(stage), bytes_text(bytes.parameters),
               bytes_text(bytes.gradients), bytes_text(bytes.optimizer), bytes_text(bytes.total()),
               bytes.total() <= memory ? "yes" : "no", bytes_per_parameter(stage, world),
               count_text(largest_model(stage, memory, world)), count_text(sent_elements(stage, parameters, world)));
  }
}

void print_json(std::uint64_t parameters, std::uint64_t memory, std::uint64_t world) {
  nlohmann::json json = {{"parameters", parameters}, {"gpu_memory_bytes", memory}, {"world", world}};
  for (const int stage : kZeroStages) {
    const StateBytes bytes = state_bytes(stage, parameters, world);
    json["stages"].push_back({{"stage", stage},
                              {"parameters_bytes", bytes.parameters},
                              {"gradients_bytes", bytes.gradients},
                              {"optimizer_bytes", bytes.optimizer},
                              {"total_bytes", bytes.total()},
                              {"fits", bytes.total() <= memory},
                              {"bytes_per_parameter", bytes_per_parameter(stage, world)},
                              {"largest_model_parameters", largest_model(stage, memory, world)},
                              {"sent_elements_per_step", sent_elements(stage, parameters, world)}});
  }
  fmt::print("{}\n", json.dump(2));
}

Exit run(const Question& question, Seat seat) {
  const std::uint64_t parameters = count_from("--parameters", question.parameters);
  const std::uint64_t memory = bytes_from("--gpu-memory", question.memory);
  if (seat.rank == 0) (question.json ? print_json : print_table)(parameters, memory, question.world);
  return Exit::ok;
}

}  // namespace

Subcommand add_plan_memory(CLI::App& program) {
  auto question = std::make_shared<Question>();
  CLI::App* app =
      program.add_subcommand("plan-memory", "What each stage of ZeRO needs on a rank, and the largest model that fits");
  app->footer(kFooter);
  app->add_option("--parameters", question->parameters, "Of the model: 7.5e9, 7.5B, 350M")->required();
  app->add_option("--gpu-memory", question->memory, "Of a rank: 80GB, 80GiB")->required();
  app->add_option("--world", question->world, "Data-parallel ranks")->required()->check(whole(1, 1'000'000));
  app->add_flag("--json", question->json, "Print JSON");
  return {.app = app, .run = [question](Seat seat) { return run(*question, seat); }};
}

}  // namespace shoal::train
