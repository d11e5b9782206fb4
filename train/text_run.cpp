// SPDX-License-Identifier: Apache-2.0
#include "train/text_run.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "train/checkpoint.h"
#include "train/nn/gemm.h"
#include "train/nn/sgd.h"
#include "train/parallel/replicas.h"
#include "train/stopwatch.h"

namespace shoal::train {
namespace {

// Steps compared by --check: longer runs amplify the last bits of a sum into differences that say nothing.
constexpr std::size_t kCheckedSteps = 20;
constexpr std::size_t kValidationBatch = 16;  // sequences at a time

// Whole tensors of a run, by name.
using Tensors = std::map<std::string, std::vector<float>>;

Tensors copy_of(TextDriver& driver, std::span<float> Piece::*what) {
  Tensors all;
  for (const Piece& each : driver.pieces()) all[each.name] = {(each.*what).begin(), (each.*what).end()};
  return all;
}

struct Worst {
  double difference = 0;
  std::string tensor;
};

double square(float value) { return static_cast<double>(value) * static_cast<double>(value); }

// Of this rank's pieces, each against the norm of its whole tensor, or of a tensor of its size with the model's average: some
// gradients are nothing but rounding (of key biases: a constant more on all scores of a query changes nothing). The worst of all
// ranks.
Worst difference(const Communicator& comm, TextDriver& driver, std::span<float> Piece::*what, const Tensors& alone) {
  double all = 0;
  std::size_t count = 0;
  for (const auto& [name, tensor] : alone) {
    for (const float value : tensor) all += square(value);
    count += tensor.size();
  }
  Worst worst;
  for (const Piece& each : driver.pieces()) {
    const std::vector<float>& whole = alone.at(each.name);
    double apart = 0, norm = 0;
    for (const float value : whole) norm += square(value);
    norm = std::max(norm, all / static_cast<double>(count) * static_cast<double>(whole.size()));
    for (std::size_t i = 0; i < (each.*what).size(); ++i) {
      const double d = static_cast<double>((each.*what)[i]) - static_cast<double>(whole[each.index(i)]);
      apart += d * d;
    }
    const double relative = apart == 0 ? 0 : std::sqrt(apart / norm);
    if (!(relative <= worst.difference)) worst = {relative, each.name};
  }
  std::vector<double> largest{std::isnan(worst.difference) ? INFINITY : worst.difference};
  comm.all_reduce(std::span(largest), Over::max);
  return {largest.front(), worst.tensor};
}

double validate(TextDriver& driver, const Text& text, std::size_t sequences) {
  const std::size_t count = std::min(sequences, text.validation_sequences());
  double sum = 0;
  for (std::size_t first = 0; first < count; first += kValidationBatch) {
    const std::size_t batch = std::min(kValidationBatch, count - first);
    sum += driver.evaluate(text.validation(first, batch)) * static_cast<double>(batch);
  }
  return sum / static_cast<double>(count);
}

// The checked steps, taken by a driver and by one process.
TextCheck compare(const TextOptions& options, const Text& text, const Communicator& comm, const MakeDriver& make) {
  TextRecipe recipe = options.recipe;
  recipe.steps = std::min(recipe.steps, kCheckedSteps);
  const auto alone = make_one_process(recipe);
  const auto driver = make(recipe, comm);
  TextCheck check{.bf16 = recipe.bf16};
  for (std::size_t step = 0; step < recipe.steps; ++step) {
    const TextSample batch = text.batch(recipe.batch, recipe.seed, step);
    const float rate = learning_rate(recipe.optimizer.rate, step, recipe.steps);
    const double expected = alone->step(batch, step, rate), got = driver->step(batch, step, rate);
    const double apart = std::abs(got - expected) / std::abs(expected);
    check.loss = std::isnan(apart) ? INFINITY : std::max(check.loss, apart);
    if (step == 0) check.gradient = difference(comm, *driver, &Piece::gradients, copy_of(*alone, &Piece::gradients)).difference;
  }
  const Worst values = difference(comm, *driver, &Piece::values, copy_of(*alone, &Piece::values));
  check.values = values.difference;
  check.worst = values.tensor;
  check.same_bits = replicas_agree(comm, driver->pieces());
  return check;
}

nlohmann::json ledger_record(const Ledger& ledger, std::size_t steps) {
  nlohmann::json sent = nlohmann::json::object(), held = nlohmann::json::object();
  for (std::size_t i = 0; i < kMovesNames.size(); ++i) {
    const Ledger::Sent& each = ledger.sent(static_cast<Moves>(i));
    if (each.calls > 0)
      sent[kMovesNames[i]] = {{"calls_per_step", static_cast<double>(each.calls) / static_cast<double>(steps)},
                              {"bytes_per_step", static_cast<double>(each.bytes) / static_cast<double>(steps)}};
  }
  for (std::size_t i = 0; i < kHoldsNames.size(); ++i)
    if (ledger.peak(static_cast<Holds>(i)) > 0) held[kHoldsNames[i]] = ledger.peak(static_cast<Holds>(i));
  return {{"sent", sent}, {"peak_bytes", held}, {"peak_bytes_total", ledger.peak()}};
}

void print_ledger(const Ledger& ledger, std::size_t steps, std::size_t parameters) {
  for (std::size_t i = 0; i < kMovesNames.size(); ++i) {
    const Ledger::Sent& each = ledger.sent(static_cast<Moves>(i));
    if (each.calls > 0)
      fmt::print("  sent a step by {:<15} {:>12.0f} bytes in {:g} calls\n", kMovesNames[i],
                 static_cast<double>(each.bytes) / static_cast<double>(steps),
                 static_cast<double>(each.calls) / static_cast<double>(steps));
  }
  for (std::size_t i = 0; i < kHoldsNames.size(); ++i) {
    const std::size_t peak = ledger.peak(static_cast<Holds>(i));
    if (peak > 0)
      fmt::print("  held at most by {:<15} {:>12} bytes, {:.2f} a parameter\n", kHoldsNames[i], peak,
                 static_cast<double>(peak) / static_cast<double>(parameters));
  }
}

}  // namespace

Exit run_text(const TextOptions& options, const std::string& scheme, Seat seat, const MakeDriver& make) {
  const TextRecipe& recipe = options.recipe;
  check_shape(recipe.shape);
  check_gemm();
  const Text text(options.text, recipe.length);
  std::ofstream json;
  if (seat.rank == 0 && !options.json.empty()) {
    json.open(options.json);
    if (!json) throw failure(Exit::usage, "--json: {}: cannot be written", options.json);
  }
  Communicator comm(seat);
  const bool speaks = seat.rank == 0;
  const std::size_t parameters = parameters_of(recipe.shape);
  auto driver = make(recipe, comm);
  if (speaks)
    fmt::print(
        "{}: {} ranks, {} layers of width {}, {} heads, {} parameters, {} sequences of {} tokens a step, {} steps on {} bytes of "
        "text\n",
        scheme, seat.world, recipe.shape.layers, recipe.shape.width, recipe.shape.heads, parameters, recipe.batch, recipe.length,
        recipe.steps, text.bytes());

  std::size_t first = 0;
  if (options.resume) {
    first = load_newest_checkpoint(options.checkpoints, driver->pieces(), comm);
    driver->reloaded();
    if (speaks) fmt::print("  resumed after step {}\n", first);
  }
  std::vector<double> losses;
  Stopwatch clock;
  for (std::size_t step = first; step < recipe.steps; ++step) {
    losses.push_back(driver->step(text.batch(recipe.batch, recipe.seed, step), step,
                                  learning_rate(recipe.optimizer.rate, step, recipe.steps)));
    if (!std::isfinite(losses.back()))
      throw failure(Exit::verdict, "the loss of step {} is {}: try a --lr below {}", step + 1, losses.back(),
                    recipe.optimizer.rate);
    if (speaks && options.log_every > 0 && ((step + 1) % options.log_every == 0 || step + 1 == recipe.steps))
      fmt::print("  step {:>5}  loss {:.4f}  {:.0f} tokens/s\n", step + 1, losses.back(),
                 static_cast<double>((step + 1 - first) * recipe.batch * recipe.length) / (clock.ms() / 1000));
    const bool last = step + 1 == recipe.steps;
    if (!options.checkpoints.empty() && (last || (options.checkpoint_every > 0 && (step + 1) % options.checkpoint_every == 0)))
      save_checkpoint(options.checkpoints, step + 1, driver->pieces(), comm);
  }
  const double seconds = (clock.ms() / 1000);
  const nlohmann::json ledger = ledger_record(driver->ledger(), std::max<std::size_t>(1, losses.size()));
  const std::string figures = driver->figures();
  if (speaks) {
    print_ledger(driver->ledger(), std::max<std::size_t>(1, losses.size()), parameters);
    fmt::print("{}", driver->summary());
  }
  const double validation = options.validation > 0 ? validate(*driver, text, options.validation) : 0;
  if (speaks && options.validation > 0) fmt::print("  validation: {:.4f} nats a token\n", validation);

  std::optional<TextCheck> check;
  driver.reset();
  if (options.check) check = compare(options, text, comm, make);
  comm.close();
  if (speaks && check)
    fmt::print("  check over {} steps: losses within {:.1e}, gradients {:.1e}, parameters {:.1e} ({}); replicas {}: {}\n",
               std::min(recipe.steps, kCheckedSteps), check->loss, check->gradient, check->values, check->worst,
               check->same_bits ? "bitwise equal" : "DIFFER", check->passed() ? "passed" : "FAILED");
  if (json.is_open()) {
    nlohmann::json record{{"scheme", scheme},           {"world", seat.world}, {"parameters", parameters},
                          {"losses", losses},           {"seconds", seconds},  {"batch", recipe.batch},
                          {"length", recipe.length},    {"ledger", ledger},    {"layers", recipe.shape.layers},
                          {"width", recipe.shape.width}};
    if (options.validation > 0) record["validation_loss"] = validation;
    if (!figures.empty()) record["figures"] = nlohmann::json::parse(figures);
    if (check)
      record["check"] = {
          {"loss", check->loss}, {"gradient", check->gradient}, {"values", check->values}, {"same_bits", check->same_bits}};
    json << record.dump(1) << '\n';
    if (!json.flush()) throw failure(Exit::usage, "--json: {}: cannot be written", options.json);
  }
  if (check && !check->passed()) return Exit::verdict;
  if (options.target_loss && options.validation > 0 && validation > *options.target_loss) return Exit::verdict;
  return Exit::ok;
}

}  // namespace shoal::train
