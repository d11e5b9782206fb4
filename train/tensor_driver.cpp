// SPDX-License-Identifier: Apache-2.0
#include "train/tensor_driver.h"

#include "train/local_model.h"
#include "train/parallel/own_comm.h"
#include "train/parallel/tensor_parallel.h"
#include "train/parallel/tensor_split.h"

namespace shoal::train {
namespace {

class TensorDriver final : public TextDriver {
 public:
  TensorDriver(const TextRecipe& recipe, const Communicator& world, bool sequence_parallel)
      : recipe_(recipe),
        sequence_parallel_(sequence_parallel),
        comm_(world, 0, world.seat().rank, ledger_),
        group_(*comm_, sequence_parallel),
        model_(recipe, group_, attention_, ledger_),
        places_(places_in_order(recipe.length)) {}

  double step(const TextSample& batch, std::size_t number, float rate) override {
    const double loss = model_.gradients_of(whole_batch(batch, places_));
    if (sequence_parallel_) sum_replicated_gradients(group_, model_.tensors(), model_.gradients());
    model_.update(number, rate);
    ++steps_;
    return loss / static_cast<double>(batch.targets.size());
  }

  double evaluate(const TextSample& batch) override {
    const TextSample padded = with_rows_for(batch, sequence_parallel_ ? comm_->seat().world : 1);
    return model_.evaluate(whole_batch(padded, places_)) / static_cast<double>(batch.targets.size());
  }

  std::vector<Piece> pieces() override { return model_.pieces(); }
  void reloaded() override { model_.round(); }
  const Ledger& ledger() const override { return ledger_; }
  std::string summary() const override {
    const std::size_t rows = recipe_.batch * recipe_.length;
    return beside_formulas(ledger_, steps_, tensor_parallel_volume(recipe_.shape, rows, comm_->seat().world, sequence_parallel_));
  }

 private:
  TextRecipe recipe_;
  bool sequence_parallel_;
  Ledger ledger_;
  OwnComm comm_;
  TensorParallel group_;
  LocalAttention attention_;
  LocalModel model_;
  std::vector<Place> places_;
  std::size_t steps_ = 0;
};

}  // namespace

std::unique_ptr<TextDriver> make_tensor_driver(const TextRecipe& recipe, const Communicator& comm, bool sequence_parallel) {
  const std::size_t rows = sequence_parallel ? recipe.batch * recipe.length : 0;
  check_tensor_parallel(recipe.shape, comm.seat().world, rows, "tensor");
  return std::make_unique<TensorDriver>(recipe, comm, sequence_parallel);
}

}  // namespace shoal::train
