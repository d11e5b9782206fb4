// SPDX-License-Identifier: Apache-2.0
#include "train/sequence_driver.h"

#include <sys/resource.h>

#include <array>
#include <nlohmann/json.hpp>

#include "train/local_model.h"
#include "train/parallel/own_comm.h"
#include "train/parallel/sequence_parallel.h"
#include "train/parallel/token_share.h"

namespace shoal::train {
namespace {

// [MiB] that this process had in memory at most.
double peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // KiB
}

class SequenceDriver final : public TextDriver {
 public:
  SequenceDriver(const TextRecipe& recipe, const Communicator& world, const SequenceOptions& options)
      : recipe_(recipe),
        world_(world),
        rank_(world.seat().rank),
        layout_(options.placing, recipe.length, world.seat().world / options.columns, options.columns),
        everybody_(world, 0, rank_, ledger_),
        heads_(world, layout_.block_of(rank_), layout_.column_of(rank_), ledger_),
        ring_(world, layout_.column_of(rank_), layout_.block_of(rank_), ledger_),
        whole_(places_in_order(recipe.length)),
        tokens_(layout_, rank_, whole_),
        attention_(layout_, &*heads_, &*ring_, whole_),
        model_(recipe, group_, attention_, ledger_) {}

  double step(const TextSample& batch, std::size_t number, float rate) override {
    const double loss = model_.gradients_of(mine(batch));
    everybody_->all_reduce(model_.gradients());
    model_.update(number, rate);
    if (++steps_ == 1) first_step_ = attention_.ring_times();
    if (const std::size_t bytes = attention_.working_bytes(); bytes > working_) {
      ledger_.hold(Holds::working, bytes - working_);
      working_ = bytes;
    }
    return mean(loss, batch);
  }

  double evaluate(const TextSample& batch) override { return mean(model_.evaluate(mine(batch)), batch); }

  std::vector<Piece> pieces() override { return model_.pieces(); }
  void reloaded() override { model_.round(); }
  const Ledger& ledger() const override { return ledger_; }
  std::string figures() override;
  std::string summary() const override;

 private:
  // Of a step, this rank's; the first step, which makes links, counts only where there is no other.
  CommTimes ring_times() const {
    const CommTimes all = attention_.ring_times(), before = steps_ > 1 ? first_step_ : CommTimes{};
    const double steps = static_cast<double>(steps_ > 1 ? steps_ - 1 : 1);
    return {.busy_ms = (all.busy_ms - before.busy_ms) / steps, .exposed_ms = (all.exposed_ms - before.exposed_ms) / steps};
  }
  // Of every sequence, the tokens that are this rank's. Valid until the next call.
  TokenBatch mine(const TextSample& batch) {
    sample_ = tokens_.cut(batch);
    return sequences_of(sample_, 0, sample_.sequences, tokens_.places(), 1 / static_cast<float>(batch.targets.size()));
  }
  double mean(double my_loss, const TextSample& batch) const {
    std::vector<double> loss{my_loss};
    everybody_->all_reduce(std::span(loss));
    return loss.front() / static_cast<double>(batch.targets.size());
  }

  TextRecipe recipe_;
  const Communicator& world_;  // whose calls are not counted
  std::size_t rank_;
  SequenceLayout layout_;
  Ledger ledger_;
  OwnComm everybody_, heads_, ring_;
  std::vector<Place> whole_;
  TokenShare tokens_;
  TextSample sample_;
  TensorGroup group_;
  SequenceAttention attention_;
  LocalModel model_;
  std::size_t steps_ = 0, working_ = 0;
  CommTimes first_step_;
  CommTimes most_;  // of all ranks; after figures()
};

std::string SequenceDriver::figures() {
  if (layout_.blocks() == 1) return {};
  const CommTimes mine = ring_times();
  std::array<double, 2> most{mine.busy_ms, mine.exposed_ms};  // a rank that is late waits less, and lets the others wait
  world_.all_reduce(std::span<double>(most), Over::max);
  most_ = {.busy_ms = most[0], .exposed_ms = most[1]};
  return nlohmann::json{{"ring_busy_ms", most_.busy_ms}, {"ring_exposed_ms", most_.exposed_ms}}.dump();
}

std::string SequenceDriver::summary() const {
  std::vector<Volume> volume = sequence_attention_volume(recipe_.shape, layout_, rank_, recipe_.batch);
  const std::size_t world = layout_.ranks(), parameters = parameters_of(recipe_.shape) * sizeof(float);
  volume.push_back({Moves::all_reduce, 1, 2 * parameters * (world - 1) / world, "gradients"});
  volume.push_back({Moves::all_reduce, 1, 2 * sizeof(double) * (world - 1) / world, "loss"});
  std::string text = beside_formulas(ledger_, steps_, volume);
  const std::uint64_t pairs = visible_pairs(whole_, whole_, true), in_step = lock_step_pairs(layout_, whole_, true);
  text += fmt::format("  {} tokens a rank, {} of them padding; query-key pairs in lock step: {:.2f} of an even split\n",
                      layout_.tokens(), layout_.ranks() * layout_.tokens() - layout_.length(),
                      static_cast<double>(in_step) * static_cast<double>(layout_.blocks()) / static_cast<double>(pairs));
  if (layout_.blocks() > 1)
    text += fmt::format("  ring: {:.2f} ms a step under way, {:.2f} ms of them waited for, on the ranks that had most\n",
                        most_.busy_ms, most_.exposed_ms);
  return text + fmt::format("  peak memory of rank 0: {:.0f} MiB\n", peak_memory());
}

}  // namespace

std::unique_ptr<TextDriver> make_sequence_driver(const TextRecipe& recipe, const Communicator& comm,
                                                 const SequenceOptions& options) {
  return std::make_unique<SequenceDriver>(recipe, comm, options);
}

}  // namespace shoal::train
