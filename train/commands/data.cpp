// SPDX-License-Identifier: Apache-2.0
// shoal-train data: the options of data-parallel training. The run itself is data_parallel.h.
#include "train/data_parallel.h"

#include <memory>

#include "train/commands/subcommand.h"
#include "train/commands/validators.h"
#include "train/parallel/comm.h"

namespace shoal::train {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  shoal-train data --model cnn --epochs 5\n"
    "  shoal-run -n 2 shoal-train data --target-accuracy 87 --json run.json\n"
    "  shoal-run -n 3 shoal-train data --epochs 1 --check\n"
    "  shoal-run -n 4 shoal-train data --compressor dgc:density=0.001 --momentum 0\n"
    "  shoal-run -n 2 shoal-train data --first-bucket-mb 0.125 --bucket-mb 0.5    more overlap for a small model\n"
    "\n"
    "A launch environment (shoal-run, torchrun, mpirun, srun) makes the world; without one the run has one rank.";

constexpr double kBytesPerMb = 1 << 20;

struct Parsed {
  DataOptions options;
  double bucket_mb = 25, first_bucket_mb = 1, target = 0;
  std::string server;
  ServerOptions servers;
};

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : models()) names.emplace_back(model.name);
  return names;
}

std::string model_help() {
  std::string help;
  for (const Model& model : models()) help += fmt::format("{}{}: {}", help.empty() ? "" : "; ", model.name, model.summary);
  return help;
}

void add_recipe_options(CLI::App& app, Parsed& parsed) {
  Recipe& recipe = parsed.options.recipe;
  app.add_option("--model", recipe.model, model_help())->check(CLI::IsMember(model_names()))->capture_default_str();
  app.add_option("--epochs", recipe.epochs, "Passes over the training set")->check(whole(1, 10000))->capture_default_str();
  app.add_option("--batch", recipe.batch, "Samples a step, of all ranks together")->check(whole(1, 60000))->capture_default_str();
  app.add_option("--accumulate", recipe.accumulate, "Micro-batches that a rank computes its share in, one after the other")
      ->check(whole(1, 60000))
      ->capture_default_str();
  app.add_option("--lr", recipe.sgd.rate, "Peak learning rate: linear warm-up, then half a cosine down")
      ->check(number_above(0, 1000))
      ->capture_default_str();
  app.add_option("--momentum", recipe.sgd.momentum, "Momentum of SGD")->check(number_within(0, 1))->capture_default_str();
  app.add_option("--weight-decay", recipe.sgd.weight_decay, "L2 decay of the weights, not of biases")
      ->check(number_within(0, 1))
      ->capture_default_str();
  app.add_option("--seed", recipe.seed, "Of initial parameters and sample order")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
}

void add_run_options(CLI::App& app, Parsed& parsed) {
  DataOptions& options = parsed.options;
  app.add_option("--data", options.folder, "Folder of the four Fashion-MNIST files (.gz)")->capture_default_str();
  app.add_option("--limit", options.limit, "Train on the first N samples only")->check(whole(1, 60000));
  app.add_option("--target-accuracy", parsed.target, "Stop when the test accuracy reaches this many %; exit 1 if it never does")
      ->check(number_above(0, 100));
  app.add_flag("--check", options.check, "Repeat the run in one process without communication and compare the parameters");
  app.add_option("--json", options.json, "Write the run's figures to this file");
  app.add_option(
      "--compressor", options.compressor,
      "Compress gradients, a tensor at a time: NAME[:KEY=VALUE,...] of docs/compression.md. dgc keeps the momentum itself: "
      "give it --momentum 0");
  app.add_option("--algorithm", options.algorithm,
                 "Of the gradients' all-reduce, as NCCL_ALGO takes it (ring, tree, halving_doubling, ...)");
  app.add_option("--server", parsed.server,
                 "Parameter servers instead of the all-reduce: sync (they sum), async, bounded (they hold the weights)")
      ->check(CLI::IsMember({"sync", "async", "bounded"}));
  app.add_option("--servers", parsed.servers.servers, "How many of the ranks host a server as well")
      ->check(whole(1, 1024))
      ->capture_default_str();
  app.add_option("--staleness", parsed.servers.staleness,
                 "Of --server bounded: iterations that a worker may be ahead of the slowest")
      ->check(whole(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--bucket-mb", parsed.bucket_mb, "Cap of a gradient bucket, MiB")
      ->check(number_above(0, 4096))
      ->capture_default_str();
  app.add_option("--first-bucket-mb", parsed.first_bucket_mb, "Cap of the first bucket, MiB")
      ->check(number_above(0, 4096))
      ->capture_default_str();
  app.add_option("--log-every", options.log_every, "Steps between progress lines; 0: none")
      ->check(whole(0, 1000000))
      ->capture_default_str();
}

Exit run(const CLI::App& app, Parsed parsed, Seat seat) {
  if (app.count("--target-accuracy") != 0) parsed.options.target_accuracy = parsed.target;
  parsed.options.caps = {.first = static_cast<std::size_t>(parsed.first_bucket_mb * kBytesPerMb),
                         .other = static_cast<std::size_t>(parsed.bucket_mb * kBytesPerMb)};
  if (parsed.options.check && !parsed.options.compressor.empty())
    throw failure(Exit::usage, "--check: a compressed run is not the run alone's: leave out --compressor, or --check");
  if (!parsed.server.empty()) {
    parsed.servers.mode = parsed.server == "sync"    ? ServerMode::sync
                          : parsed.server == "async" ? ServerMode::async
                                                     : ServerMode::bounded;
    parsed.servers.rate = parsed.options.recipe.sgd.rate;
    if (!parsed.options.compressor.empty() || !parsed.options.algorithm.empty())
      throw failure(Exit::usage, "--server: there is no all-reduce for --{}",
                    parsed.options.compressor.empty() ? "algorithm" : "compressor");
    if (parsed.servers.servers > seat.world)
      throw failure(Exit::usage, "--servers: {} servers on {} ranks: each rank hosts at most one", parsed.servers.servers,
                    seat.world);
    const bool sums = parsed.servers.mode == ServerMode::sync;
    if (!sums && (parsed.options.recipe.sgd.momentum != 0 || parsed.options.recipe.sgd.weight_decay != 0))
      throw failure(Exit::usage, "--momentum: {} (and decay {}): the servers of --server {} step without: give --momentum 0",
                    parsed.options.recipe.sgd.momentum, parsed.options.recipe.sgd.weight_decay, parsed.server);
    if (!sums && parsed.options.check)
      throw failure(Exit::usage, "--check: what --server {} ends with depends on who was faster: leave out --check",
                    parsed.server);
    parsed.options.server = parsed.servers;
  }
  if (blocks_of(parsed.options.recipe.batch) < seat.world) {
    throw failure(Exit::usage, "--batch: {} leaves some of {} ranks without a sample (shares are blocks of {}): at least {}",
                  parsed.options.recipe.batch, seat.world, kSampleBlock, seat.world * kSampleBlock);
  }
  return run_data_parallel(parsed.options, seat);
}

}  // namespace

Subcommand add_data(CLI::App& program) {
  auto parsed = std::make_shared<Parsed>();
  CLI::App* app = program.add_subcommand(
      "data", "Data-parallel training on Fashion-MNIST: each rank a share of every batch, gradients all-reduced");
  app->footer(kFooter);
  add_recipe_options(*app, *parsed);
  add_run_options(*app, *parsed);
  return {.app = app, .run = [app, parsed](Seat seat) { return run(*app, *parsed, seat); }};
}

}  // namespace shoal::train
