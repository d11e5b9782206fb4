// SPDX-License-Identifier: Apache-2.0
#include "train/pipeline_driver.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>

#include "train/model_update.h"
#include "train/parallel/pipeline.h"
#include "train/timeline.h"

namespace shoal::train {
namespace {

// What a stage tells the others of itself.
struct StageFigures {
  std::uint64_t parameters = 0, in_flight = 0, activation_bytes = 0, sent_bytes = 0, messages = 0, micro_batch_bytes = 0;
};

class PipelineDriver final : public TextDriver {
 public:
  PipelineDriver(const TextRecipe& recipe, const PipelineOptions& options, const PipelineSurroundings& around)
      : recipe_(recipe),
        options_(options),
        around_(around),
        mine_(sequences_for(recipe.batch, around.replica)),
        places_(places_in_order(recipe.length)),
        ledger_(around.ledger != nullptr ? *around.ledger : own_ledger_),
        pipeline_(recipe.shape, plan_pipeline(recipe.shape, options.choice, around.stages.seat().world, mine_.count),
                  {around.stages, around.group, around.attention, ledger_}, recipe.seed, options.stand_in) {
    for (Gpt& chunk : pipeline_.chunks()) updates_.emplace_back(chunk, recipe, ledger_);
  }

  double step(const TextSample& batch, std::size_t number, float rate) override {
    for (Gpt& chunk : pipeline_.chunks()) std::ranges::fill(chunk.gradients(), 0.0F);
    if (is_measured()) pipeline_.start_clock();
    const double loss = pipeline_.train(micro_batches(batch));
    if (is_measured()) keep_fastest();
    ++steps_;
    if (options_.stand_in) return 0;

    for (Gpt& chunk : pipeline_.chunks()) {
      if (around_.reduce_gradients) around_.reduce_gradients(chunk);
    }
    pipeline_.sum_tied();
    for (ModelUpdate& each : updates_) each.update(number, rate);
    return (around_.reduce_loss ? around_.reduce_loss(loss) : loss) / static_cast<double>(batch.targets.size());
  }

  // Every replica computes all of it.
  double evaluate(const TextSample& batch) override {
    const double targets = static_cast<double>(batch.targets.size());
    const TextSample mine = with_rows_for(my_tokens(batch), around_.group.world());
    const double loss = pipeline_.evaluate(sequences_of(mine, 0, mine.sequences, places(), static_cast<float>(1 / targets)));
    return (around_.reduce_loss ? around_.reduce_loss(loss) / static_cast<double>(around_.replica.world) : loss) / targets;
  }

  std::vector<Piece> pieces() override {
    std::vector<Piece> all;
    for (ModelUpdate& chunk : updates_)
      for (Piece& each : chunk.pieces()) all.push_back(std::move(each));
    return all;
  }

  void reloaded() override {
    for (ModelUpdate& each : updates_) each.round();
  }
  const Ledger& ledger() const override { return ledger_; }
  std::string figures() override;
  std::string summary() const override;

 private:
  const PipelinePlan& plan() const { return pipeline_.plan(); }
  bool is_measured() const { return !options_.timeline.empty() || options_.stand_in; }

  std::span<const Place> places() const {
    return around_.tokens != nullptr ? around_.tokens->places() : std::span<const Place>(places_);
  }
  // Valid until the next call.
  const TextSample& my_tokens(const TextSample& batch) {
    if (around_.tokens == nullptr) return batch;
    sample_ = around_.tokens->cut(batch);
    return sample_;
  }

  std::vector<TokenBatch> micro_batches(const TextSample& batch) {
    const std::size_t count = options_.choice.micro_batches, each = mine_.count / count;
    const float weight = 1 / static_cast<float>(batch.targets.size());
    std::vector<TokenBatch> all;
    const TextSample& mine = my_tokens(batch);
    for (std::size_t i = 0; i < count; ++i) all.push_back(sequences_of(mine, mine_.first + i * each, each, places(), weight));
    return all;
  }

  // The first step also pays for memory and connections that the others have.
  void keep_fastest() {
    Timeline timeline = pipeline_.timeline();
    if (steps_ < 2 || timeline.makespan() < fastest_.makespan()) fastest_ = std::move(timeline);
  }

  TextRecipe recipe_;
  PipelineOptions options_;
  PipelineSurroundings around_;
  Sequences mine_;
  std::vector<Place> places_;  // of a whole sequence
  TextSample sample_;
  Ledger own_ledger_;
  Ledger& ledger_;
  Pipeline pipeline_;
  std::vector<ModelUpdate> updates_;  // by chunk
  std::size_t steps_ = 0;
  Timeline fastest_;                  // on all stages
  std::vector<StageFigures> stages_;  // after figures()
};

std::string PipelineDriver::figures() {
  const ScheduleShape& shape = plan().shape();
  const std::size_t steps = std::max<std::size_t>(1, steps_);
  const Ledger::Sent& sent = ledger_.sent(Moves::point_to_point);
  StageFigures own{.in_flight = pipeline_.most_in_flight(),
                   .activation_bytes = ledger_.peak(Holds::activations),
                   .sent_bytes = sent.bytes / steps,
                   .messages = sent.calls / steps};
  for (std::size_t c = 0; c < updates_.size(); ++c) {
    own.parameters += pipeline_.chunks()[c].values().size();
    own.micro_batch_bytes += pipeline_.bytes_in_flight(c);
  }
  constexpr std::size_t kNumbers = sizeof(StageFigures) / sizeof(std::uint64_t);
  const auto numbers = std::bit_cast<std::array<std::uint64_t, kNumbers>>(own);
  std::vector<std::uint64_t> all(kNumbers * shape.stages);
  around_.stages.all_gather<std::uint64_t>(numbers, std::span(all));
  nlohmann::json by_stage = nlohmann::json::array();
  std::uint64_t bytes = 0;
  for (std::size_t s = 0; s < shape.stages; ++s) {
    std::array<std::uint64_t, kNumbers> its{};
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(s * kNumbers), kNumbers, its.begin());
    const auto& stage = stages_.emplace_back(std::bit_cast<StageFigures>(its));
    bytes += stage.sent_bytes;
    nlohmann::json units = nlohmann::json::array();
    for (std::size_t c = 0; c < shape.chunks; ++c) units.push_back({plan().units(s, c).first, plan().units(s, c).last});
    by_stage.push_back({{"units", units},
                        {"parameters", stage.parameters},
                        {"in_flight", stage.in_flight},
                        {"micro_batch_bytes", stage.micro_batch_bytes},
                        {"activation_bytes", stage.activation_bytes},
                        {"messages_per_step", stage.messages},
                        {"sent_bytes_per_step", stage.sent_bytes}});
  }
  nlohmann::json record{{"schedule", name_of(shape.kind)}, {"stages", shape.stages},       {"micro_batches", shape.micro_batches},
                        {"chunks", shape.chunks},          {"sent_bytes_per_step", bytes}, {"by_stage", by_stage}};
  if (is_measured()) {
    record["measured"] = {
        {"seconds", fastest_.makespan()}, {"utilisation", fastest_.utilisation()}, {"bubble", fastest_.bubble()}};
    if (options_.stand_in) {
      const Timeline predicted = predict(plan().schedule, *options_.stand_in);
      record["predicted"] = {
          {"seconds", predicted.makespan()}, {"utilisation", predicted.utilisation()}, {"bubble", predicted.bubble()}};
    }
  }
  if (!options_.timeline.empty() && around_.stages.seat().rank == 0 && around_.replica.rank == 0)
    write_svg(fastest_,
              fmt::format("{}, {} stages{}, {} micro-batches", name_of(shape.kind), shape.stages,
                          shape.chunks > 1 ? fmt::format(" of {} chunks", shape.chunks) : "", shape.micro_batches),
              options_.timeline);
  return record.dump();
}

std::string PipelineDriver::summary() const {
  const ScheduleShape& shape = plan().shape();
  std::string text;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    std::vector<std::string> units;
    for (std::size_t c = 0; c < shape.chunks; ++c)
      units.push_back(fmt::format("{}-{}", plan().units(s, c).first, plan().units(s, c).last - 1));
    text += fmt::format(
        "  stage {}: units {}, {} parameters, at most {} in flight ({} bytes), sends {} bytes in {} messages a step\n", s,
        fmt::join(units, " and "), stages_[s].parameters, stages_[s].in_flight, stages_[s].activation_bytes,
        stages_[s].sent_bytes, stages_[s].messages);
  }
  if (!is_measured()) return text;
  text += fmt::format("  fastest of {} steps: {:.1f} ms, utilisation {:.1f} %", steps_, 1000 * fastest_.makespan(),
                      100 * fastest_.utilisation());
  if (options_.stand_in) {
    const Timeline predicted = predict(plan().schedule, *options_.stand_in);
    text += fmt::format("; predicted {:.1f} ms, {:.1f} %", 1000 * predicted.makespan(), 100 * predicted.utilisation());
  }
  return text + '\n';
}

}  // namespace

std::unique_ptr<TextDriver> make_pipeline(const TextRecipe& recipe, const PipelineOptions& options,
                                          const PipelineSurroundings& surroundings) {
  return std::make_unique<PipelineDriver>(recipe, options, surroundings);
}

}  // namespace shoal::train
