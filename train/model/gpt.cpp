// SPDX-License-Identifier: Apache-2.0
#include "train/model/gpt.h"

#include <algorithm>

#include "train/error.h"
#include "train/model/block.h"
#include "train/model/embedding.h"

namespace shoal::train {

void check_shape(const GptShape& shape) {
  if (shape.layers == 0 || shape.width == 0 || shape.heads == 0 || shape.hidden == 0 || shape.vocabulary == 0)
    throw failure(Exit::usage, "a model of {} layers of width {} with {} heads, hidden {} and vocabulary {}: none may be 0",
                  shape.layers, shape.width, shape.heads, shape.hidden, shape.vocabulary);
  if (shape.width % shape.heads != 0)
    throw failure(Exit::usage, "a width of {} does not divide into {} heads", shape.width, shape.heads);
}

std::size_t parameters_of(const GptShape& shape) {
  const std::size_t d = shape.width, block = 4 * d * d + 2 * d * shape.hidden + shape.hidden + 9 * d;
  return shape.layers * block + (shape.tied ? 1 : 2) * shape.vocabulary * d + 2 * d;
}

std::unique_ptr<Unit> make_unit(const GptShape& shape, std::size_t number, TensorGroup& group, Attention& attention,
                                Head::Table table) {
  if (number == 0) return std::make_unique<Embedding>(shape, group);
  if (number + 1 == shape.units()) return std::make_unique<Head>(shape, group, table);
  return std::make_unique<Block>(shape, number - 1, group, attention);
}

Gpt::Gpt(const GptShape& shape, UnitRange units, TensorGroup& group, Attention& attention, std::uint64_t seed)
    : shape_(shape), range_(units), group_(group), tied_here_(shape.tied && units.first == 0 && units.last == shape.units()) {
  check_shape(shape);
  const Head::Table table = !shape.tied ? Head::Table::own : tied_here_ ? Head::Table::shared : Head::Table::copy;
  for (std::size_t u = units.first; u < units.last; ++u) {
    units_.push_back(make_unit(shape, u, group, attention, table));
    offsets_.push_back(tensors_.empty() ? 0 : tensors_.back().offset + tensors_.back().count);
    for (TensorSpec& spec : units_.back()->tensors()) append(tensors_, std::move(spec));
  }
  offsets_.push_back(tensors_.empty() ? 0 : tensors_.back().offset + tensors_.back().count);
  values_.resize(offsets_.back());
  gradients_.resize(offsets_.back());
  initialise_by_name(tensors_, seed, values_);
  for (std::size_t u = units.first; u < units.last; ++u) {
    const std::size_t count = offset(u + 1) - offset(u);
    unit(u).bind(values().subspan(offset(u), count), gradients().subspan(offset(u), count));
  }
  if (tied_here_) {
    const std::size_t table_size = offset(1);
    static_cast<Head&>(unit(shape.units() - 1)).tie(values().first(table_size), gradients().first(table_size));
  }
  activations_.resize(units_.size());
  stashes_.resize(units_.size());
}

double Gpt::loss() const { return static_cast<const Head&>(*units_.back()).loss(); }

void Gpt::forward(const TokenBatch& batch) {
  const std::size_t size = group_.my_rows(batch.rows()) * shape_.width;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    stashes_[u].resize(units_[u]->stash_size(batch));
    activations_[u].resize(u + 1 < units_.size() ? size : 0);
    units_[u]->forward(batch, u == 0 ? std::span<const float>() : activations_[u - 1], activations_[u], stashes_[u]);
  }
}

double Gpt::evaluate(const TokenBatch& batch) {
  forward(batch);
  return loss();
}

double Gpt::forward_backward(const TokenBatch& batch, const Ready& ready) {
  forward(batch);
  flowing_in_.resize(group_.my_rows(batch.rows()) * shape_.width);
  flowing_out_.resize(flowing_in_.size());
  for (std::size_t u = units_.size(); u-- > 0;) {
    const bool last = u + 1 == units_.size();
    units_[u]->backward_input(batch, u == 0 ? std::span<const float>() : activations_[u - 1],
                              last ? std::span<float>() : std::span(flowing_in_),
                              u == 0 ? std::span<float>() : std::span(flowing_out_), stashes_[u]);
    units_[u]->backward_parameters(batch, stashes_[u]);
    std::swap(flowing_in_, flowing_out_);
    // A shared table is complete when its first user, the embedding, is done.
    if (ready) ready(offsets_[u]);
  }
  return loss();
}

}  // namespace shoal::train
