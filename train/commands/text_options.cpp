// SPDX-License-Identifier: Apache-2.0
#include "train/commands/text_options.h"

#include "train/commands/validators.h"

namespace shoal::train {

void add_text_options(CLI::App& app, TextArguments& arguments) {
  TextOptions& o = arguments.options;
  TextRecipe& r = o.recipe;
  const auto count = [&](const char* name, std::size_t& value, const char* help, std::uint64_t from, std::uint64_t up_to) {
    app.add_option(name, value, help)->check(whole(from, up_to))->capture_default_str();
  };
  count("--layers", r.shape.layers, "Transformer blocks", 1, 1000);
  count("--width", r.shape.width, "Values of a token", 1, 65536);
  count("--heads", r.shape.heads, "Attention heads", 1, 1024);
  count("--hidden", r.shape.hidden, "Values of a block's GELU layer; 4 x width unless given", 1, 262144);
  count("--vocabulary", r.shape.vocabulary, "Byte values known; more than 256 are never seen", 256, 1 << 20);
  app.add_flag("--tied", r.shape.tied, "The head multiplies by the embedding's table");
  count("--length", r.length, "Tokens of a sequence", 1, 1 << 24);
  count("--batch", r.batch, "Sequences a step, of all ranks together", 1, 1 << 20);
  count("--steps", r.steps, "Steps", 1, 100'000'000);
  app.add_option("--seed", r.seed, "Of initial parameters and batches")->check(whole(0, UINT64_MAX))->capture_default_str();
  app.add_option("--optimizer", arguments.optimizer, "sgd (with --momentum), adam, adamw")
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}))
      ->capture_default_str();
  app.add_option("--lr", r.optimizer.rate, "Peak learning rate: linear warm-up, then half a cosine down")
      ->check(number_above(0, 1000))
      ->capture_default_str();
  app.add_option("--momentum", r.optimizer.momentum, "Of sgd")->check(number_within(0, 1))->capture_default_str();
  app.add_option("--weight-decay", r.optimizer.weight_decay, "Of matrices, not of biases and gains")
      ->check(number_within(0, 1))
      ->capture_default_str();
  app.add_option("--precision", arguments.precision,
                 "fp32, or bf16: weights and gradients in bf16, float32 masters in the optimiser")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  app.add_option("--text", o.text, "A file, or a folder of files")->capture_default_str();
  count("--log-every", o.log_every, "Steps between progress lines; 0: none", 0, 1'000'000);
  count("--validation", o.validation, "Sequences of the validation at the end; 0: none", 0, 1 << 20);
  app.add_option("--target-loss", arguments.target_loss, "Exit 1 if the validation is above so many nats a token")
      ->check(number_above(0, 100));
  app.add_flag("--check", o.check, "Repeat the first 20 steps in one process and compare losses, gradients and parameters");
  app.add_option("--json", o.json, "Write the run's figures to this file");
  app.add_option("--checkpoints", o.checkpoints, "Folder for checkpoints that any scheme and world can load");
  count("--checkpoint-every", o.checkpoint_every, "Steps between checkpoints; 0: one at the end", 0, 100'000'000);
  app.add_flag("--resume", o.resume, "Begin from the newest checkpoint of --checkpoints, if there is one");
}

TextOptions finish_text_options(const CLI::App& app, TextArguments arguments) {
  TextOptions& o = arguments.options;
  TextRecipe& r = o.recipe;
  if (app.count("--hidden") == 0) r.shape.hidden = 4 * r.shape.width;
  r.optimizer.rule = arguments.optimizer == "sgd" ? Rule::sgd : arguments.optimizer == "adam" ? Rule::adam : Rule::adamw;
  r.bf16 = arguments.precision == "bf16";
  if (app.count("--target-loss") != 0) o.target_loss = arguments.target_loss;
  if (o.target_loss && o.validation == 0) throw failure(Exit::usage, "--target-loss: there is no validation with --validation 0");
  if (o.checkpoints.empty() && (o.resume || o.checkpoint_every > 0))
    throw failure(Exit::usage, "--{}: --checkpoints names no folder", o.resume ? "resume" : "checkpoint-every");
  return o;
}

}  // namespace shoal::train
