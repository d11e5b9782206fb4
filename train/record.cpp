// SPDX-License-Identifier: Apache-2.0
#include "train/record.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "train/error.h"

namespace shoal::train {
namespace {

double mib(std::size_t parameters) { return static_cast<double>(parameters * sizeof(float)) / (1 << 20); }

double percent(double part, double whole) { return whole > 0 ? 100.0 * part / whole : 0.0; }

template <typename... Args>
void line(fmt::format_string<Args...> format, Args&&... args) {
  fmt::print("{}\n", fmt::format(format, std::forward<Args>(args)...));
  std::fflush(stdout);  // a launcher's pipe is not a terminal: a line must not wait for the next ones
}

void print_share(const char* what, double ms, const TimeRecord& time) {
  line("  {:<22}{:>9.3f} ms  {:>5.1f} %", what, ms / static_cast<double>(time.timed_steps()), percent(ms, time.step_ms));
}

nlohmann::json json_of(const EpochRecord& epoch) {
  return {{"epoch", epoch.epoch},
          {"loss", epoch.loss},
          {"train_accuracy_percent", epoch.accuracy},
          {"seconds", epoch.seconds},
          {"samples_per_s", epoch.samples_per_s},
          {"test_accuracy_percent", epoch.test_accuracy}};
}

nlohmann::json json_of(const TimeRecord& time) {
  const double steps = static_cast<double>(time.timed_steps());
  return {{"steps", time.timed_steps()},
          {"step_ms", time.step_ms / steps},
          {"compute_ms", time.compute_ms() / steps},
          {"communication_hidden_ms", time.hidden_ms() / steps},
          {"communication_exposed_ms", time.exposed_ms / steps},
          {"late_rank_ms", time.late_ms / steps}};
}

nlohmann::json json_of(const CheckRecord& check) {
  return {{"passed", check.passed()},
          {"same_bits_on_all_ranks", check.same_bits},
          {"max_relative_l2", check.difference},
          {"worst_tensor", check.worst},
          {"tolerance", kTolerance}};
}

nlohmann::json json_of(const Recipe& recipe) {
  return {{"model", recipe.model},
          {"batch", recipe.batch},
          {"epochs", recipe.epochs},
          {"seed", recipe.seed},
          {"lr", recipe.sgd.rate},
          {"momentum", recipe.sgd.momentum},
          {"weight_decay", recipe.sgd.weight_decay}};
}

nlohmann::json json_of(const RunRecord& run) {
  nlohmann::json json = {{"recipe", json_of(run.recipe)}, {"world", run.world},
                         {"samples", run.samples},        {"parameters", run.parameters},
                         {"time", json_of(run.time)},     {"bytes_all_reduced_per_step", run.parameters * sizeof(float)}};
  for (const Bucket& bucket : run.buckets) json["bucket_bytes"].push_back(bucket.count() * sizeof(float));
  for (const EpochRecord& epoch : run.epochs) json["epochs"].push_back(json_of(epoch));
  if (run.target_accuracy) {
    json["target_accuracy_percent"] = *run.target_accuracy;
    json["reached_target"] = run.reached_target();
  }
  if (run.compression) {
    const CompressionRecord& c = *run.compression;
    const double steps = static_cast<double>(std::max<std::size_t>(run.time.steps, 1));
    json["compression"] = {{"compressor", c.compressor},
                           {"encoded_bytes_per_step", c.encoded_bytes / steps},
                           {"sent_bytes_per_step", c.sent_bytes / steps},
                           {"received_bytes_per_step", c.received_bytes / steps}};
  }
  if (run.check) json["check"] = json_of(*run.check);
  return json;
}

}  // namespace

bool RunRecord::reached_target() const {
  return !target_accuracy || (!epochs.empty() && epochs.back().test_accuracy >= *target_accuracy);
}

void print_header(const RunRecord& run) {
  std::vector<std::string> sizes;
  for (const Bucket& bucket : run.buckets) sizes.push_back(fmt::format("{:.2f}", mib(bucket.count())));
  const std::size_t most = largest_share(run.recipe.batch, run.world), even = most * run.world;
  line("data-parallel training of {}: {} parameters in {} tensors, {} samples, {} epochs", run.recipe.model, run.parameters,
       run.tensors, run.samples, run.recipe.epochs);
  line("world {}, batch {} ({} a rank), {} bucket{} of {} MiB in order of launch", run.world, run.recipe.batch,
       even == run.recipe.batch ? fmt::format("{}", most) : fmt::format("up to {}", most), sizes.size(),
       sizes.size() == 1 ? "" : "s", fmt::join(sizes, ", "));
}

void print_progress(const RunRecord& run, std::size_t epoch, std::size_t step, const Score& score, double samples_per_s) {
  const double samples = static_cast<double>(score.samples);
  line("epoch {:>2}  step {:>4}/{}  loss {:.4f}  accuracy {:5.2f} %  {:>8.0f} samples/s", epoch, step,
       steps_per_epoch(run.recipe, run.samples), score.loss / samples, percent(static_cast<double>(score.correct), samples),
       samples_per_s);
}

void print_epoch(const EpochRecord& epoch) {
  line("epoch {:>2}  test accuracy {:.2f} %  (training: loss {:.4f}, accuracy {:.2f} %, {:.0f} samples/s; {:.1f} s)", epoch.epoch,
       epoch.test_accuracy, epoch.loss, epoch.accuracy, epoch.samples_per_s, epoch.seconds);
}

void print_summary(const RunRecord& run) {
  const TimeRecord& time = run.time;
  line("a step's time on rank 0, mean of {} steps:", time.timed_steps());
  print_share("compute", time.compute_ms(), time);
  print_share("communication exposed", time.exposed_ms, time);
  if (run.world > 1) print_share("  of it a late rank", time.late_ms, time);
  print_share("step", time.step_ms, time);
  print_share("communication hidden", time.hidden_ms(), time);
  line("all-reduced a step: {} bytes in {} calls", run.parameters * sizeof(float), run.buckets.size());
  if (run.compression) {
    const double steps = static_cast<double>(std::max<std::size_t>(time.steps, 1));
    line("compressed by {}: {:.0f} bytes a step and rank, {:.1f} times fewer; {:.0f} received", run.compression->compressor,
         run.compression->encoded_bytes / steps,
         static_cast<double>(run.parameters * sizeof(float)) * steps / std::max(run.compression->encoded_bytes, 1.0),
         run.compression->received_bytes / steps);
  }
  if (run.target_accuracy && !run.reached_target()) {
    line("target accuracy {:.2f} % not reached: {:.2f} %", *run.target_accuracy, run.epochs.back().test_accuracy);
  }
}

void print_check(const CheckRecord& check) {
  line("check: all ranks hold the same bits: {}", check.same_bits ? "yes" : "NO");
  line("check: largest relative L2 difference from the run alone: {:.2e} ({}), allowed {:.0e}: {}", check.difference, check.worst,
       kTolerance, check.difference <= kTolerance ? "ok" : "FAILED");
}

std::ofstream open_json(const std::string& path) {
  std::ofstream file(path);
  if (!file) throw failure(Exit::usage, "--json: {} cannot be written", path);
  return file;
}

void write_json(const RunRecord& run, std::ofstream file, const std::string& path) {
  file << json_of(run).dump(2) << '\n';
  file.close();
  if (!file) throw failure(Exit::usage, "--json: {} could not be written whole", path);
}

}  // namespace shoal::train
