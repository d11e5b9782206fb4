// SPDX-License-Identifier: Apache-2.0
#include "train/hybrid_driver.h"

#include "train/parallel/own_comm.h"
#include "train/parallel/sequence_parallel.h"
#include "train/parallel/tensor_parallel.h"
#include "train/parallel/tensor_split.h"
#include "train/parallel/token_share.h"

namespace shoal::train {
namespace {

class HybridDriver final : public TextDriver {
 public:
  HybridDriver(const TextRecipe& recipe, const Communicator& world, const HybridOptions& options)
      : options_(options),
        grid_(options.grid),
        place_(place_in(grid_, world.seat().rank)),
        layout_(options.placing, recipe.length, grid_.sequence / options.columns, options.columns),
        tensor_(group(world, Axis::tensor)),
        heads_(world, first_of(world, Axis::sequence) * layout_.blocks() + layout_.block_of(place_.sequence),
               layout_.column_of(place_.sequence), ledger_),
        ring_(world, first_of(world, Axis::sequence) * layout_.columns() + layout_.column_of(place_.sequence),
              layout_.block_of(place_.sequence), ledger_),
        stages_(group(world, Axis::pipeline)),
        replicas_(group(world, Axis::replicas)),
        whole_(places_in_order(recipe.length)),
        matrices_(*tensor_, options.sequence_parallel),
        attention_(layout_, &*heads_, &*ring_, whole_),
        tokens_(layout_, place_.sequence, whole_),
        pipeline_(make_pipeline(recipe, options.pipeline, surroundings())) {}

  double step(const TextSample& batch, std::size_t number, float rate) override { return pipeline_->step(batch, number, rate); }
  double evaluate(const TextSample& batch) override { return pipeline_->evaluate(batch); }
  std::vector<Piece> pieces() override { return pipeline_->pieces(); }
  void reloaded() override { pipeline_->reloaded(); }
  const Ledger& ledger() const override { return pipeline_->ledger(); }
  std::string figures() override { return pipeline_->figures(); }
  std::string summary() const override { return fmt::format("  grid: {}\n", describe(grid_)) + pipeline_->summary(); }

 private:
  // A number that all ranks of my group along the axis have in common, and no others.
  std::size_t first_of(const Communicator& world, Axis axis) const { return group_of(grid_, world.seat().rank, axis).front(); }
  OwnComm group(const Communicator& world, Axis axis) { return {world, first_of(world, axis), world.seat().rank, ledger_}; }

  PipelineSurroundings surroundings() {
    return {.stages = *stages_,
            .group = matrices_,
            .attention = attention_,
            .replica = {.rank = place_.data, .world = grid_.data},
            .tokens = &tokens_,
            .ledger = &ledger_,
            .reduce_gradients =
                [this](Gpt& chunk) {
                  if (options_.sequence_parallel) sum_replicated_gradients(matrices_, chunk.tensors(), chunk.gradients());
                  if (replicas_->seat().world > 1) replicas_->all_reduce(chunk.gradients());
                },
            .reduce_loss =
                [this](double loss) {
                  std::vector<double> sum{loss};
                  replicas_->all_reduce(std::span(sum));
                  return sum.front();
                }};
  }

  HybridOptions options_;
  GridShape grid_;
  GridPlace place_;
  SequenceLayout layout_;
  Ledger ledger_;
  OwnComm tensor_, heads_, ring_, stages_, replicas_;
  std::vector<Place> whole_;
  TensorParallel matrices_;
  SequenceAttention attention_;
  TokenShare tokens_;
  std::unique_ptr<TextDriver> pipeline_;
};

}  // namespace

std::unique_ptr<TextDriver> make_hybrid_driver(const TextRecipe& recipe, const Communicator& comm, const HybridOptions& options) {
  const GridShape& grid = options.grid;
  check_grid(grid, comm.seat().world);
  if (grid.sequence % options.columns != 0)
    throw failure(Exit::usage, "--columns: {} ranks that exchange heads do not divide --sp {}", options.columns, grid.sequence);
  if (recipe.batch % grid.data != 0)
    throw failure(Exit::usage, "--batch: {} sequences do not divide over --dp {}", recipe.batch, grid.data);
  const std::size_t micro = recipe.batch / grid.data / std::max<std::size_t>(1, options.pipeline.choice.micro_batches);
  const SequenceLayout layout(options.placing, recipe.length, grid.sequence / options.columns, options.columns);
  check_tensor_parallel(recipe.shape, grid.tensor, options.sequence_parallel ? micro * layout.tokens() : 0, "--tp");
  return std::make_unique<HybridDriver>(recipe, comm, options);
}

}  // namespace shoal::train
