// SPDX-License-Identifier: Apache-2.0
#include "train/model/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "train/nn/gelu.h"

namespace shoal::train {
namespace {

// y += x.
void add(std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
}

void add_to_rows(std::span<const float> row, std::span<float> rows) {
  for (std::size_t at = 0; at < rows.size(); at += row.size()) add(row, rows.subspan(at, row.size()));
}

void add_column_sums(std::span<const float> rows, std::span<float> sums) {
  for (std::size_t at = 0; at < rows.size(); at += sums.size()) add(rows.subspan(at, sums.size()), sums);
}

}  // namespace

// Kept for backward: what forward saw (m: my rows, w: whole rows) ...
struct Block::Stash {
  std::span<float> statistics1, norm1;       // m
  std::span<float> qkv, log_sums, attended;  // w
  std::span<float> middle;                   // m: r
  std::span<float> statistics2, norm2;       // m
  std::span<float> hidden, active;           // w
  // ... and what backward_input leaves for backward_parameters (w): the gradients of the outputs of the four matrices.
  std::span<float> dqkv, dproj, dhidden, dfc2;
};

Block::Block(const GptShape& shape, std::size_t number, TensorGroup& group, Attention& attention)
    : shape_(shape),
      name_(fmt::format("block{}", number)),
      group_(group),
      attention_(attention),
      heads_(shape.heads / group.world()),
      width_(heads_ * shape.head_size()),
      hidden_(shape.hidden / group.world()),
      norm_{shape.width},
      qkv_{shape.width, 3 * width_},
      proj_{width_, shape.width},
      fc1_{shape.width, hidden_},
      fc2_{hidden_, shape.width} {}

std::vector<TensorSpec> Block::tensors() const {
  const std::size_t d = shape_.width, rank = group_.rank();
  const auto vector = [&](const char* name, float start = 0) {
    return TensorSpec{.name = fmt::format("{}.{}", name_, name), .shape = {d}, .start = start};
  };
  const auto by_columns = [&](const char* name, std::size_t whole, std::size_t here) {
    return TensorSpec{.name = fmt::format("{}.{}.weight", name_, name),
                      .shape = {here, d},
                      .fan_in = d,
                      .whole = {whole, d},
                      .first = {here * rank, 0}};
  };
  const auto its_bias = [&](const char* name, std::size_t whole, std::size_t here) {
    return TensorSpec{.name = fmt::format("{}.{}.bias", name_, name), .shape = {here}, .whole = {whole}, .first = {here * rank}};
  };
  const auto by_rows = [&](const char* name, std::size_t whole, std::size_t here) {
    return TensorSpec{.name = fmt::format("{}.{}.weight", name_, name),
                      .shape = {d, here},
                      .fan_in = whole,
                      .whole = {d, whole},
                      .first = {0, here * rank}};
  };
  return {vector("norm1.gain", 1),
          vector("norm1.bias"),
          by_columns("query", d, width_),
          by_columns("key", d, width_),
          by_columns("value", d, width_),
          its_bias("query", d, width_),
          its_bias("key", d, width_),
          its_bias("value", d, width_),
          by_rows("proj", d, width_),
          vector("proj.bias"),
          vector("norm2.gain", 1),
          vector("norm2.bias"),
          by_columns("fc1", shape_.hidden, hidden_),
          its_bias("fc1", shape_.hidden, hidden_),
          by_rows("fc2", shape_.hidden, hidden_),
          vector("fc2.bias")};
}

Block::Parameters Block::cut(std::span<float> arena) const {
  const std::size_t d = shape_.width;
  std::size_t at = 0;
  const auto next = [&](std::size_t count) { return arena.subspan(std::exchange(at, at + count), count); };
  Parameters p;
  p.norm1_gain = next(d);
  p.norm1_bias = next(d);
  p.qkv = next(3 * width_ * d);
  p.qkv_bias = next(3 * width_);
  p.proj = next(d * width_);
  p.proj_bias = next(d);
  p.norm2_gain = next(d);
  p.norm2_bias = next(d);
  p.fc1 = next(hidden_ * d);
  p.fc1_bias = next(hidden_);
  p.fc2 = next(d * hidden_);
  p.fc2_bias = next(d);
  return p;
}

void Block::bind(std::span<float> values, std::span<float> gradients) {
  values_ = cut(values);
  gradients_ = cut(gradients);
}

AttentionSize Block::attention_size(const TokenBatch& batch) const {
  return {.sequences = batch.sequences, .places = batch.places, .heads = heads_, .head = shape_.head_size()};
}

// With an empty memory only the sizes count.
Block::Stash Block::lay_out(const TokenBatch& batch, std::span<float> memory) const {
  const std::size_t whole = batch.rows(), mine = group_.my_rows(whole), d = shape_.width;
  std::size_t at = 0;
  const auto next = [&](std::size_t count) { return memory.subspan(std::exchange(at, at + count), count); };
  Stash s;
  s.statistics1 = next(2 * mine);
  s.norm1 = next(mine * d);
  s.qkv = next(whole * 3 * width_);
  s.log_sums = next(attention_.stash_size(attention_size(batch)));
  s.attended = next(whole * width_);
  s.middle = next(mine * d);
  s.statistics2 = next(2 * mine);
  s.norm2 = next(mine * d);
  s.hidden = next(whole * hidden_);
  s.active = next(whole * hidden_);
  s.dqkv = next(whole * 3 * width_);
  s.dproj = next(whole * d);
  s.dhidden = next(whole * hidden_);
  s.dfc2 = next(whole * d);
  return s;
}

std::size_t Block::stash_size(const TokenBatch& batch) const {
  const std::size_t whole = batch.rows(), d = shape_.width;
  return kept_size(batch) + whole * (3 * width_ + hidden_ + 2 * d);
}

std::size_t Block::kept_size(const TokenBatch& batch) const {
  const std::size_t whole = batch.rows(), mine = group_.my_rows(whole);
  return mine * (4 + 3 * shape_.width) + whole * (4 * width_ + 2 * hidden_) + attention_.stash_size(attention_size(batch));
}

std::span<float> Block::room(std::vector<float>& memory, std::size_t size) {
  if (memory.size() < size) memory.resize(size);
  return std::span(memory).first(size);
}

void Block::forward(const TokenBatch& batch, std::span<const float> x, std::span<float> y, std::span<float> stash) {
  const Stash s = lay_out(batch, stash);
  const std::size_t d = shape_.width, whole = batch.rows() * d, mine = x.size();
  norm_.forward(x, values_.norm1_gain, values_.norm1_bias, s.norm1, s.statistics1);
  qkv_.forward(group_.enter(s.norm1, room(room_, whole)), values_.qkv, values_.qkv_bias, s.qkv);
  attention_.forward(attention_size(batch), s.qkv, s.attended, s.log_sums);
  proj_.forward(s.attended, values_.proj, {}, room(partial_, whole));
  std::ranges::copy(x, s.middle.begin());
  add(group_.leave(room(partial_, whole), room(room_, mine)), s.middle);
  add_to_rows(values_.proj_bias, s.middle);

  norm_.forward(s.middle, values_.norm2_gain, values_.norm2_bias, s.norm2, s.statistics2);
  fc1_.forward(group_.enter(s.norm2, room(room_, whole)), values_.fc1, values_.fc1_bias, s.hidden);
  gelu(s.hidden, s.active);
  fc2_.forward(s.active, values_.fc2, {}, room(partial_, whole));
  std::ranges::copy(s.middle, y.begin());
  add(group_.leave(room(partial_, whole), room(room_, mine)), y);
  add_to_rows(values_.fc2_bias, y);
}

void Block::backward_input(const TokenBatch& batch, std::span<const float> x, std::span<float> dy, std::span<float> dx,
                           std::span<float> stash) {
  const Stash s = lay_out(batch, stash);
  const std::size_t d = shape_.width, whole = batch.rows() * d, mine = x.size();
  add_column_sums(dy, gradients_.fc2_bias);
  std::ranges::copy(group_.leave_backward(dy, room(room_, whole)), s.dfc2.begin());
  fc2_.input_gradient(s.dfc2, values_.fc2, s.dhidden);
  gelu_backward(s.hidden, s.dhidden);
  fc1_.input_gradient(s.dhidden, values_.fc1, room(partial_, whole));
  const auto dnorm2 = group_.enter_backward(room(partial_, whole), room(room_, mine));
  const auto dmiddle = dy;  // the residual's share is there already
  norm_.backward(s.middle, values_.norm2_gain, s.statistics2, dnorm2, dmiddle, gradients_.norm2_gain, gradients_.norm2_bias);

  add_column_sums(dmiddle, gradients_.proj_bias);
  std::ranges::copy(group_.leave_backward(dmiddle, room(room_, whole)), s.dproj.begin());
  const auto dattended = room(flowing_, s.attended.size());
  proj_.input_gradient(s.dproj, values_.proj, dattended);
  attention_.backward(attention_size(batch), s.qkv, s.attended, s.log_sums, dattended, s.dqkv);
  qkv_.input_gradient(s.dqkv, values_.qkv, room(partial_, whole));
  const auto dnorm1 = group_.enter_backward(room(partial_, whole), room(room_, mine));
  std::ranges::copy(dmiddle, dx.begin());
  norm_.backward(x, values_.norm1_gain, s.statistics1, dnorm1, dx, gradients_.norm1_gain, gradients_.norm1_bias);
}

void Block::backward_parameters(const TokenBatch& batch, std::span<float> stash) {
  const Stash s = lay_out(batch, stash);
  const std::size_t whole = batch.rows() * shape_.width;
  fc2_.parameter_gradient(s.active, s.dfc2, gradients_.fc2, {});
  fc1_.parameter_gradient(group_.enter(s.norm2, room(room_, whole)), s.dhidden, gradients_.fc1, gradients_.fc1_bias);
  proj_.parameter_gradient(s.attended, s.dproj, gradients_.proj, {});
  qkv_.parameter_gradient(group_.enter(s.norm1, room(room_, whole)), s.dqkv, gradients_.qkv, gradients_.qkv_bias);
}

}  // namespace shoal::train
