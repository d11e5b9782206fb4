// SPDX-License-Identifier: Apache-2.0
// A way of training the transformer on text: what a scheme of parallelism implements, and the plainest one. All ranks call the
// same in the same order; every rank is given the whole batch and takes what is its own.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "train/data/text.h"
#include "train/model/gpt.h"
#include "train/nn/optimizer.h"
#include "train/parallel/ledger.h"
#include "train/parallel/share.h"
#include "train/piece.h"

namespace shoal::train {

// Units, named by what stands before the first dot of a tensor's name, that are not trained from a step on: not updated, and of
// no part in the gradient's norm.
struct Freeze {
  std::vector<std::string> units;
  std::size_t from = 0;

  bool holds(std::string_view tensor, std::size_t step) const;
};

struct TextRecipe {
  GptShape shape;
  std::size_t length = 128;  // [tokens] of a sequence
  std::size_t batch = 16;    // [sequences] of all ranks together, a step
  std::size_t steps = 200;
  std::uint64_t seed = 1;
  Optimizer optimizer;
  bool bf16 = false;  // weights and gradients rounded to bf16, with float32 masters in the optimiser
  double clip = 0;    // the gradient's norm, over all tensors, is brought down to this; 0: it may be any
  Freeze freeze;
};

class TextDriver {
 public:
  virtual ~TextDriver() = default;

  // One step on the whole batch. The mean loss of its targets before the update, the same on all ranks. `number`: from 0.
  virtual double step(const TextSample& batch, std::size_t number, float rate) = 0;
  // The mean loss, without training.
  virtual double evaluate(const TextSample& batch) = 0;

  // What this rank holds after a step: parameters (masters), their gradients of the last step (of the mean loss, summed over
  // ranks), moments. Together all ranks' pieces are the whole model. Valid until the next call.
  virtual std::vector<Piece> pieces() = 0;
  // Values and moments of the pieces have been written to, by a checkpoint.
  virtual void reloaded() {}

  virtual const Ledger& ledger() const = 0;
  // Collective, after the last step: figures of the scheme for --json, a JSON object; empty: none.
  virtual std::string figures() { return {}; }
  // One line or more about the scheme for the end of a run; empty: nothing to say.
  virtual std::string summary() const { return {}; }
};

// Sequences [first, first + count) of a sample, as a batch for a model. `places` and `sample` outlive it.
TokenBatch sequences_of(const TextSample& sample, std::size_t first, std::size_t count, std::span<const Place> places,
                        float weight);
// All of it, with the weight of the mean over its targets.
TokenBatch whole_batch(const TextSample& sample, std::span<const Place> places);
// Places 0 .. length - 1 of one document.
std::vector<Place> places_in_order(std::size_t length);

// With sequences behind it that have no targets, until its rows divide by `world`.
TextSample with_rows_for(TextSample sample, std::size_t world);

// Splits `sequences` over `world` as evenly as they go, the first ranks one more.
struct Sequences {
  std::size_t first = 0, count = 0;
};
Sequences sequences_for(std::size_t sequences, Seat seat);

// The run that all others must agree with: everything in one process.
std::unique_ptr<TextDriver> make_one_process(const TextRecipe& recipe);

}  // namespace shoal::train
