// SPDX-License-Identifier: Apache-2.0
#include "train/model/head.h"

#include <algorithm>

#include "train/model/embedding.h"
#include "train/nn/token_loss.h"

namespace shoal::train {

struct Head::Stash {
  std::span<float> statistics, norm;  // my rows
  std::span<float> dlogits;           // whole rows, this rank's range of the vocabulary
};

Head::Head(const GptShape& shape, TensorGroup& group, Table table)
    : shape_(shape),
      group_(group),
      where_(table),
      rows_(shape.vocabulary / group.world()),
      norm_{shape.width},
      linear_{shape.width, rows_} {}

std::vector<TensorSpec> Head::tensors() const {
  std::vector<TensorSpec> all{{.name = "head.norm.gain", .shape = {shape_.width}, .start = 1},
                              {.name = "head.norm.bias", .shape = {shape_.width}}};
  if (where_ != Table::shared)
    all.push_back(vocabulary_part(where_ == Table::own ? "head.weight" : "embedding.weight", shape_, group_));
  return all;
}

void Head::bind(std::span<float> values, std::span<float> gradients) {
  const std::size_t d = shape_.width;
  gain_ = values.first(d);
  bias_ = values.subspan(d, d);
  gain_gradient_ = gradients.first(d);
  bias_gradient_ = gradients.subspan(d, d);
  if (where_ == Table::shared) return;
  table_ = values.subspan(2 * d);
  table_gradient_ = gradients.subspan(2 * d);
}

void Head::tie(std::span<float> table, std::span<float> gradient) {
  table_ = table;
  table_gradient_ = gradient;
}

Head::Stash Head::lay_out(const TokenBatch& batch, std::span<float> memory) const {
  const std::size_t mine = group_.my_rows(batch.rows());
  return {memory.first(2 * mine), memory.subspan(2 * mine, mine * shape_.width), memory.subspan(mine * (2 + shape_.width))};
}

std::size_t Head::stash_size(const TokenBatch& batch) const {
  return group_.my_rows(batch.rows()) * (2 + shape_.width) + batch.rows() * rows_;
}

void Head::forward(const TokenBatch& batch, std::span<const float> x, std::span<float>, std::span<float> stash) {
  const Stash s = lay_out(batch, stash);
  const std::size_t whole = batch.rows();
  norm_.forward(x, gain_, bias_, s.norm, s.statistics);
  room_.resize(whole * shape_.width);
  linear_.forward(group_.enter(s.norm, room_), table_, {}, s.dlogits);

  const TokenLoss part{.first = rows_ * group_.rank(), .count = rows_};
  numbers_.resize(3 * whole);
  const auto largest = std::span(numbers_).first(whole), sums_and_targets = std::span(numbers_).subspan(whole);
  const auto sums = sums_and_targets.first(whole), targets = sums_and_targets.subspan(whole);
  part.largest(s.dlogits, largest);
  group_.all_reduce_max(largest);
  part.exponentials(s.dlogits, largest, batch.targets, sums, targets);
  group_.all_reduce_sum(sums_and_targets);
  loss_ = TokenLoss::loss(batch.targets, largest, sums, targets);
  part.gradient(s.dlogits, batch.targets, sums, batch.weight);
}

void Head::backward_input(const TokenBatch& batch, std::span<const float> x, std::span<float>, std::span<float> dx,
                          std::span<float> stash) {
  const Stash s = lay_out(batch, stash);
  partial_.resize(batch.rows() * shape_.width);
  room_.resize(partial_.size());
  linear_.input_gradient(s.dlogits, table_, partial_);
  const auto dnorm = group_.enter_backward(partial_, std::span(room_).first(x.size()));
  std::ranges::fill(dx, 0.0F);
  norm_.backward(x, gain_, s.statistics, dnorm, dx, gain_gradient_, bias_gradient_);
}

void Head::backward_parameters(const TokenBatch& batch, std::span<float> stash) {
  const Stash s = lay_out(batch, stash);
  room_.resize(batch.rows() * shape_.width);
  linear_.parameter_gradient(group_.enter(s.norm, room_), s.dlogits, table_gradient_, {});
}

}  // namespace shoal::train
