// SPDX-License-Identifier: Apache-2.0
// shoal-train zero: the options of ZeRO. The scheme itself is zero_driver.h.
#include "train/zero_driver.h"

#include <memory>

#include "train/commands/subcommand.h"
#include "train/commands/text_options.h"
#include "train/commands/validators.h"

namespace shoal::train {
namespace {

constexpr const char* kFooter =
    "Stages, and bytes a parameter with --precision bf16 on N ranks:\n"
    "  0  plain data parallelism: gradients all-reduced        16\n"
    "  1  optimiser state sharded                              4 + 12 / N\n"
    "  2  gradients sharded too                                2 + 14 / N\n"
    "  3  weights sharded too: gathered before every use       16 / N\n"
    "ZeRO++, with --node G: --secondary adds 2 / G bytes a parameter, and backward gathers inside the node; quantised weights "
    "and\n"
    "gradients (in two levels) make what a step sends between nodes, with int8 and int4, a quarter of stage 3's in bf16.\n"
    "\n"
    "Examples:\n"
    "  shoal-run -n 4 shoal-train zero --stage 3 --check\n"
    "  shoal-run -n 4 shoal-train zero --stage 2 --precision bf16 --accumulate 4 --clip 1\n"
    "  shoal-run -n 4 shoal-train zero --stage 3 --replicate 2          shards over 2 ranks, 2 replicas\n"
    "  shoal-run -n 4 shoal-train zero --stage 3 --node 2 --secondary --quantise-weights int8 --quantise-gradients int4   "
    "ZeRO++\n"
    "  shoal-run -n 3 shoal-train zero --stage 2 --checkpoints ck --checkpoint-every 50 --resume";

struct Parsed {
  TextArguments text;
  ZeroTraining training;
};

Exit run(const CLI::App& app, const Parsed& parsed, Seat seat) {
  const TextOptions options = finish_text_options(app, parsed.text);
  const ZeroTraining& training = parsed.training;
  const bool quantised = !(training.store.weight_format + training.store.gradient_format).empty();
  if (options.check && quantised)
    throw failure(Exit::usage, "--check: a quantised run is not the run alone's: leave out the --quantise options, or --check");
  if (options.check && options.recipe.bf16 && seat.world > 1)
    throw failure(
        Exit::usage,
        "--check: with --precision bf16 each of {} ranks rounds its gradients before they are summed, which one process "
        "does not: check with fp32",
        seat.world);
  if (app.count("--freeze-from") != 0 && options.recipe.freeze.units.empty())
    throw failure(Exit::usage, "--freeze-from {}: --freeze names no unit", options.recipe.freeze.from);
  return run_text(options, fmt::format("zero stage {}", training.store.stage), seat,
                  [&](const TextRecipe& recipe, const Communicator& comm) { return make_zero(recipe, training, comm); });
}

}  // namespace

Subcommand add_zero(CLI::App& program) {
  auto parsed = std::make_shared<Parsed>();
  CLI::App* app = program.add_subcommand("zero", "ZeRO: optimiser state, gradients and weights sharded over the ranks");
  app->footer(kFooter);
  ZeroTraining& training = parsed->training;
  TextRecipe& recipe = parsed->text.options.recipe;
  app->add_option("--stage", training.store.stage, "What is sharded, see below")->check(whole(0, 3))->capture_default_str();
  app->add_option("--prefetch", training.prefetch, "Units whose weights are fetched ahead (stage 3), at most 2 groups at a time")
      ->check(whole(0, 1000))
      ->capture_default_str();
  app->add_option("--accumulate", training.accumulate, "Micro-batches that a rank's sequences of a step are computed in")
      ->check(whole(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--replicate", training.store.replicas, "Groups of ranks that each shard a whole model")
      ->check(whole(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--node", training.store.node,
                  "Ranks of a node, consecutive ones: counts what is sent inside and between, quantises gradients in two levels")
      ->check(whole(1, 1 << 20));
  app->add_flag("--secondary", training.store.secondary,
                "Each node keeps the weights of a step's first gathering: later ones stay inside (stage 3, --node)");
  app->add_option("--clip", recipe.clip, "Largest norm of the gradient of all trained parameters")->check(number_above(0, 1e9));
  app->add_option("--freeze", recipe.freeze.units, "Units that are not trained: embedding, block0, ..., head")->delimiter(',');
  app->add_option("--freeze-from", recipe.freeze.from, "... from this step on, counted from 0")->check(whole(0, 100'000'000));
  app->add_option("--quantise-weights", training.store.weight_format, "Wire format of gathered weights (stage 3)")
      ->check(CLI::IsMember({"int8", "int4", "fp8_e4m3", "bf16", "fp16"}));
  app->add_option("--quantise-gradients", training.store.gradient_format, "Wire format of reduced gradients")
      ->check(CLI::IsMember({"int8", "int4", "fp8_e4m3", "bf16", "fp16"}));
  add_text_options(*app, parsed->text);
  return {.app = app, .run = [app, parsed](Seat seat) { return run(*app, *parsed, seat); }};
}

}  // namespace shoal::train
