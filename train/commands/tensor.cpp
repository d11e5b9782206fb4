// SPDX-License-Identifier: Apache-2.0
// shoal-train tensor: the options of tensor-parallel training. The loop is text_run.h, the scheme tensor_driver.h.
#include <memory>

#include "train/commands/subcommand.h"
#include "train/commands/text_options.h"
#include "train/tensor_driver.h"

namespace shoal::train {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  shoal-run -n 4 shoal-train tensor --check\n"
    "  shoal-run -n 2 shoal-train tensor --sequence-parallel --layers 2 --steps 20 --check\n"
    "\n"
    "A launch environment (shoal-run, torchrun, mpirun, srun) makes the world; without one the run has one rank.";

struct Parsed {
  TextArguments text;
  bool sequence_parallel = false;
};

Exit run(const CLI::App& app, const Parsed& parsed, Seat seat) {
  const TextOptions options = finish_text_options(app, parsed.text);
  const bool sequence_parallel = parsed.sequence_parallel;
  return run_text(
      options, sequence_parallel ? "tensor parallel, sequence parallel between matrices" : "tensor parallel", seat,
      [=](const TextRecipe& recipe, const Communicator& comm) { return make_tensor_driver(recipe, comm, sequence_parallel); });
}

}  // namespace

Subcommand add_tensor(CLI::App& program) {
  auto parsed = std::make_shared<Parsed>();
  CLI::App* app = program.add_subcommand(
      "tensor", "Tensor-parallel training of a transformer on text: every matrix split over the ranks (Megatron-LM)");
  app->footer(kFooter);
  add_text_options(*app, parsed->text);
  app->add_flag("--sequence-parallel", parsed->sequence_parallel,
                "Between matrices, each rank has its share of the rows: reduce-scatter and all-gather for each all-reduce");
  return {.app = app, .run = [app, parsed](Seat seat) { return run(*app, *parsed, seat); }};
}

}  // namespace shoal::train
