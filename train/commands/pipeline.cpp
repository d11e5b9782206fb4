// SPDX-License-Identifier: Apache-2.0
// shoal-train pipeline: the options of training by a pipeline. The run itself is pipeline_driver.h.
#include <fstream>
#include <memory>

#include "train/commands/subcommand.h"
#include "train/commands/text_options.h"
#include "train/commands/validators.h"
#include "train/pipeline_driver.h"

namespace shoal::train {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  shoal-run -n 4 shoal-train pipeline --micro-batches 8\n"
    "  shoal-run -n 2 shoal-train pipeline --schedule interleaved --chunks 2 --micro-batches 4 --check\n"
    "  shoal-run -n 4 shoal-train pipeline --schedule zero-bubble --micro-batches 8 --stand-in 20,20,20 --steps 3 --timeline "
    "zb.svg\n"
    "\n"
    "Every rank is a stage. A launch environment (shoal-run, torchrun, mpirun, srun) makes the world; without one there is one.";

struct Parsed {
  TextArguments text;
  PipelineOptions options;
  std::string schedule = "1f1b";
  std::vector<double> stand_in_ms;
};

void add_pipeline_options(CLI::App& app, Parsed& parsed) {
  PipelineChoice& choice = parsed.options.choice;
  app.add_option("--schedule", parsed.schedule, "The order of a stage's work")
      ->check(CLI::IsMember(schedule_names()))
      ->capture_default_str();
  app.add_option("--micro-batches", choice.micro_batches, "Parts that a step's sequences are cut into")
      ->check(whole(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--chunks", choice.chunks, "Slices of the model a stage; of interleaved 2 unless given")->check(whole(1, 1024));
  app.add_option(
         "--split", choice.split,
         "Units (embedding, blocks, head) of each slice, in the model's order: 2,2,1,1; evenly by parameters unless given")
      ->check(whole(0, 1 << 20))
      ->delimiter(',');
  app.add_flag("--recompute", choice.recompute,
               "Keep only the input of a slice, and run its forward again before its backward: less memory, more work");
  app.add_option("--timeline", parsed.options.timeline, "Draw the fastest step to this file (SVG)");
  app.add_option("--stand-in", parsed.stand_in_ms,
                 "F,B,W: nothing is computed; a stage sleeps so many ms for a micro-batch's forward, input gradient and weight "
                 "gradient. Messages are real")
      ->check(number_within(0, 60000))
      ->delimiter(',')
      ->expected(3);
}

Exit run(const CLI::App& app, Parsed parsed, Seat seat) {
  TextOptions text = finish_text_options(app, parsed.text);
  PipelineOptions& options = parsed.options;
  PipelineChoice& choice = options.choice;
  choice.kind = schedule_named(parsed.schedule);
  if (choice.kind == ScheduleKind::interleaved && app.count("--chunks") == 0) choice.chunks = 2;
  if (!parsed.stand_in_ms.empty()) {
    if (text.check) throw failure(Exit::usage, "--check: with --stand-in nothing is computed that could be compared");
    const std::vector<double>& ms = parsed.stand_in_ms;
    options.stand_in = {.forward = ms[0] / 1000, .backward_input = ms[1] / 1000, .backward_weight = ms[2] / 1000};
    if (choice.recompute) options.stand_in->backward_input += options.stand_in->forward;
    text.validation = text.log_every = 0;
  }
  check_shape(text.recipe.shape);
  plan_pipeline(text.recipe.shape, choice, seat.world, text.recipe.batch);
  if (seat.rank == 0 && !options.timeline.empty() && !std::ofstream(options.timeline))
    throw failure(Exit::usage, "--timeline: {}: cannot be written", options.timeline);

  TensorGroup alone;
  LocalAttention attention;
  return run_text(text, fmt::format("pipeline, {}, {} micro-batches", parsed.schedule, choice.micro_batches), seat,
                  [&](const TextRecipe& recipe, const Communicator& comm) {
                    return make_pipeline(recipe, options, {.stages = comm, .group = alone, .attention = attention});
                  });
}

}  // namespace

Subcommand add_pipeline(CLI::App& program) {
  auto parsed = std::make_shared<Parsed>();
  CLI::App* app = program.add_subcommand(
      "pipeline", "A transformer on text, a few of its layers a rank: micro-batches go through the ranks by a schedule");
  app->footer(kFooter);
  add_pipeline_options(*app, *parsed);
  add_text_options(*app, parsed->text);
  return {.app = app, .run = [app, parsed](Seat seat) { return run(*app, *parsed, seat); }};
}

}  // namespace shoal::train
