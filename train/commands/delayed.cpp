// SPDX-License-Identifier: Apache-2.0
// shoal-train delayed: the options of training with delayed averaging. The run itself is delayed.h.
#include "train/delayed_averaging.h"

#include <memory>

#include "train/commands/subcommand.h"
#include "train/commands/validators.h"
#include "train/nn/models.h"

namespace shoal::train {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  shoal-run -n 4 shoal-train delayed --delay 20 --local-steps 5\n"
    "  shoal-run -n 4 shoal-train delayed --delay 20 --local-steps 1 --no-correction    the usual stale updates\n"
    "  shoal-run -n 4 shoal-train delayed --kind fedavg --local-steps 10 --non-iid\n"
    "  shoal-run -n 4 shoal-train delayed --kind diloco --local-steps 100\n"
    "  SHOAL_SHIM=latency=210ms shoal-run -n 8 shoal-train delayed --compute-ms 20 --delay 20 --local-steps 5\n"
    "\n"
    "A launch environment (shoal-run, torchrun, mpirun, srun) makes the world; without one the run has one rank.";

struct Parsed {
  DelayedOptions options;
  std::size_t delay = 20, local_steps = 5, batch = 128;
  bool no_correction = false, non_iid = false;
  double outer_rate = 0.7, outer_momentum = 0.9;
  std::string inner = "sgd";
  double rate = 0.1;
};

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : models()) names.emplace_back(model.name);
  return names;
}

void add_schedule_options(CLI::App& app, Parsed& parsed) {
  app.add_option(
         "--kind", parsed.options.kind,
         "dga: delayed gradient averaging; fedavg: no delay, ranks weigh as their samples; local-sgd: no delay, equal weights; "
         "diloco: local AdamW, Nesterov on what it did")
      ->check(CLI::IsMember({"dga", "fedavg", "local-sgd", "diloco"}))
      ->capture_default_str();
  app.add_option("--delay", parsed.delay, "D: iterations from the end of a round to the use of its mean (dga; 20)")
      ->check(whole(0, 1000000));
  app.add_option("--local-steps", parsed.local_steps, "K: iterations of a round (5; diloco: 100)")->check(whole(1, 1000000));
  app.add_flag("--no-correction", parsed.no_correction, "Apply means when they are there, and nothing before (dga)");
  app.add_option("--sync-steps", parsed.options.schedule.sync_steps, "The first iterations, synchronous (local-sgd)")
      ->check(whole(0, 1000000))
      ->capture_default_str();
  app.add_option("--outer-lr", parsed.outer_rate, "Rate of the outer optimiser (diloco)")
      ->check(number_above(0, 100))
      ->capture_default_str();
  app.add_option("--outer-momentum", parsed.outer_momentum, "Nesterov momentum of the outer optimiser (diloco)")
      ->check(number_within(0, 1))
      ->capture_default_str();
}

void add_worker_options(CLI::App& app, Parsed& parsed) {
  DelayedOptions& options = parsed.options;
  app.add_option("--model", options.replica.model, "As shoal-train data has it")
      ->check(CLI::IsMember(model_names()))
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "Passes over the training set, of all ranks together")
      ->check(whole(1, 10000))
      ->capture_default_str();
  app.add_option("--batch", parsed.batch, "Samples an iteration, of all ranks together")
      ->check(whole(1, 60000))
      ->capture_default_str();
  app.add_option("--optimizer", parsed.inner, "Of each rank (sgd; diloco: adamw)")
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}));
  app.add_option("--lr", parsed.rate, "Peak learning rate (0.1; adam, adamw: 0.001): linear warm-up, then half a cosine down")
      ->check(number_above(0, 1000));
  app.add_option("--momentum", options.replica.optimizer.momentum, "Momentum of SGD")
      ->check(number_within(0, 1))
      ->capture_default_str();
  app.add_option("--weight-decay", options.replica.optimizer.weight_decay, "Of weights, not of biases")
      ->check(number_within(0, 1))
      ->capture_default_str();
  app.add_flag("--non-iid", parsed.non_iid, "Each rank has two pieces of the samples sorted by label, not a fair share");
  app.add_option("--seed", options.replica.seed, "Of initial parameters, shards and orders")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--data", options.folder, "Folder of the four Fashion-MNIST files (.gz)")->capture_default_str();
  app.add_option("--limit", options.limit, "Train on the first N samples only")->check(whole(1, 60000));
  app.add_option("--compute-ms", options.compute_ms, "No training: every iteration sleeps so long")
      ->check(number_above(0, 60000));
  app.add_option("--iterations", options.iterations, "With --compute-ms: how many")
      ->check(whole(2, 1000000))
      ->capture_default_str();
  app.add_option("--parameters", options.parameters, "With --compute-ms: how many")
      ->check(whole(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the run's figures to this file");
  app.add_option("--log-every", options.log_every, "Iterations between progress lines; 0: none")
      ->check(whole(0, 1000000))
      ->capture_default_str();
}

// Throws Error (Exit::usage) for options that contradict each other.
DelayedOptions finish(const CLI::App& app, Parsed parsed, Seat seat) {
  DelayedOptions options = parsed.options;
  const std::string& kind = options.kind;
  const bool dga = kind == "dga", diloco = kind == "diloco";
  const auto only_for = [&](const char* option, const char* of, bool allowed) {
    if (app.count(option) > 0 && !allowed)
      throw failure(Exit::usage, "{}: only --kind {} knows it, and this is --kind {}", option, of, kind);
  };
  only_for("--delay", "dga", dga);
  only_for("--no-correction", "dga", dga);
  only_for("--sync-steps", "local-sgd", kind == "local-sgd");
  only_for("--outer-lr", "diloco", diloco);
  only_for("--outer-momentum", "diloco", diloco);
  for (const char* option : {"--iterations", "--parameters"})
    if (app.count(option) > 0 && options.compute_ms == 0)
      throw failure(Exit::usage, "{}: only for a stand-in: give it --compute-ms", option);

  options.schedule.delay = dga ? parsed.delay : 0;
  options.schedule.local_steps = diloco && app.count("--local-steps") == 0 ? 100 : parsed.local_steps;
  options.schedule.correction = !parsed.no_correction;
  if (options.schedule.in_flight() > 64)
    throw failure(Exit::usage, "--delay: {} with --local-steps {} has {} rounds on their way at a time: at most 64",
                  options.schedule.delay, options.schedule.local_steps, options.schedule.in_flight());
  if (diloco) options.outer = {.rate = parsed.outer_rate, .momentum = parsed.outer_momentum};
  options.by_size = kind == "fedavg";

  Optimizer& optimizer = options.replica.optimizer;
  const std::string inner = diloco && app.count("--optimizer") == 0 ? "adamw" : parsed.inner;
  optimizer.rule = inner == "sgd" ? Rule::sgd : inner == "adam" ? Rule::adam : Rule::adamw;
  optimizer.rate = app.count("--lr") == 0 && optimizer.rule != Rule::sgd ? 1e-3 : parsed.rate;
  options.spread = parsed.non_iid ? Spread::by_label : Spread::even;
  if (parsed.batch < seat.world)
    throw failure(Exit::usage, "--batch: {} leaves some of {} ranks without a sample: at least {}", parsed.batch, seat.world,
                  seat.world);
  options.replica.batch = parsed.batch / seat.world;
  return options;
}

}  // namespace

Subcommand add_delayed(CLI::App& program) {
  auto parsed = std::make_shared<Parsed>();
  CLI::App* app = program.add_subcommand(
      "delayed", "Ranks take steps of their own on Fashion-MNIST, and average what they did: DGA, FedAvg, local SGD, DiLoCo");
  app->footer(kFooter);
  add_schedule_options(*app, *parsed);
  add_worker_options(*app, *parsed);
  return {.app = app, .run = [app, parsed](Seat seat) { return run_delayed(finish(*app, *parsed, seat), seat); }};
}

}  // namespace shoal::train
