// SPDX-License-Identifier: Apache-2.0
// shoal-train hybrid: the options of training on a grid of ranks. The run itself is text_run.h, the scheme hybrid_driver.h.
#include "train/hybrid_driver.h"

#include <memory>

#include "train/commands/subcommand.h"
#include "train/commands/text_options.h"
#include "train/commands/validators.h"

namespace shoal::train {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  shoal-run -n 8 shoal-train hybrid --dp 2 --tp 2 --pp 2\n"
    "  shoal-run -n 4 shoal-train hybrid --tp 2 --sp 2 --attention ulysses --check\n"
    "  shoal-run -n 4 shoal-train hybrid --dp 2 --pp 2 --schedule zero-bubble --micro-batches 8 --timeline step.svg\n"
    "\n"
    "rank = tensor + T (sequence + S (data + D pipeline)): tensor ranks are neighbours, stages farthest apart.";

struct Parsed {
  TextArguments text;
  HybridOptions options;
  std::string schedule = "1f1b", attention = "ring", layout = "zigzag";
};

Exit run(const CLI::App& app, Parsed parsed, Seat seat) {
  HybridOptions& o = parsed.options;
  o.pipeline.choice.kind = schedule_named(parsed.schedule);
  o.placing = parsed.layout == "contiguous" ? Placing::contiguous
              : parsed.layout == "striped"  ? Placing::striped
                                            : Placing::zigzag;
  if (app.count("--columns") == 0) o.columns = parsed.attention == "ulysses" ? o.grid.sequence : 1;
  if (app.count("--dp") == 0) {
    const std::size_t others = o.grid.tensor * o.grid.sequence * o.grid.pipeline;
    if (seat.world % others != 0)
      throw failure(Exit::usage, "--tp {} x --sp {} x --pp {} do not divide the launch's {} ranks", o.grid.tensor,
                    o.grid.sequence, o.grid.pipeline, seat.world);
    o.grid.data = seat.world / others;
  }
  return run_text(finish_text_options(app, parsed.text), "hybrid", seat,
                  [&](const TextRecipe& recipe, const Communicator& comm) { return make_hybrid_driver(recipe, comm, o); });
}

}  // namespace

Subcommand add_hybrid(CLI::App& program) {
  auto parsed = std::make_shared<Parsed>();
  CLI::App* app = program.add_subcommand("hybrid", "Data, tensor, pipeline and sequence parallelism together on a grid of ranks");
  app->footer(kFooter);
  GridShape& grid = parsed->options.grid;
  app->add_option("--tp", grid.tensor, "Ranks that share matrices")->check(whole(1, 1024))->capture_default_str();
  app->add_option("--pp", grid.pipeline, "Stages")->check(whole(1, 1024))->capture_default_str();
  app->add_option("--sp", grid.sequence, "Ranks that share the tokens of a sequence")
      ->check(whole(1, 1024))
      ->capture_default_str();
  app->add_option("--dp", grid.data, "Ranks that share the sequences of a step; default: what is left of the launch")
      ->check(whole(1, 1024));
  app->add_flag("--sequence-parallel", parsed->options.sequence_parallel,
                "Norms and residuals of tensor ranks on shares of the rows: reduce-scatter and all-gather instead of all-reduce");
  app->add_option("--attention", parsed->attention, "Of sequence ranks: ring or ulysses")
      ->check(CLI::IsMember({"ring", "ulysses"}))
      ->capture_default_str();
  app->add_option("--columns", parsed->options.columns, "Of sequence ranks: so many exchange heads, rings go across (2D)")
      ->check(whole(1, 1024));
  app->add_option("--layout", parsed->layout, "Of a sequence's tokens over its ranks")
      ->check(CLI::IsMember({"contiguous", "striped", "zigzag"}))
      ->capture_default_str();
  PipelineChoice& choice = parsed->options.pipeline.choice;
  app->add_option("--schedule", parsed->schedule, "Of the stages")->check(CLI::IsMember(schedule_names()))->capture_default_str();
  app->add_option("--micro-batches", choice.micro_batches, "That a data rank's share of a step is cut into")
      ->check(whole(1, 100'000))
      ->capture_default_str();
  app->add_option("--chunks", choice.chunks, "Slices of the model a stage (interleaved)")
      ->check(whole(1, 1000))
      ->capture_default_str();
  app->add_option(
         "--split", choice.split,
         "Units (embedding, blocks, head) of each slice, in the model's order: 2,2,1,1; evenly by parameters unless given")
      ->check(whole(0, 1 << 20))
      ->delimiter(',');
  app->add_flag("--recompute", choice.recompute, "Keep only the input of a slice, and run its forward again before its backward");
  app->add_option("--timeline", parsed->options.pipeline.timeline, "Draw the fastest step into this SVG");
  add_text_options(*app, parsed->text);
  return {.app = app, .run = [app, parsed](Seat seat) { return run(*app, *parsed, seat); }};
}

}  // namespace shoal::train
