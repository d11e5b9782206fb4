// SPDX-License-Identifier: Apache-2.0
#include "train/nn/linear.h"

#include "train/nn/gemm.h"
#include "train/nn/rowwise.h"

namespace shoal::train {

void Linear::forward(std::span<const float> x, std::span<const float> weight, std::span<const float> bias,
                     std::span<float> y) const {
  const std::size_t tokens = x.size() / inputs;
  if (!bias.empty()) fill_rows(bias, y);
  gemm({x, tokens, inputs}, transpose({weight, outputs, inputs}), bias.empty() ? Into::overwrite : Into::add, y);
}

void Linear::input_gradient(std::span<const float> dy, std::span<const float> weight, std::span<float> dx) const {
  gemm({dy, dy.size() / outputs, outputs}, {weight, outputs, inputs}, Into::overwrite, dx);
}

void Linear::parameter_gradient(std::span<const float> x, std::span<const float> dy, std::span<float> weight_gradient,
                                std::span<float> bias_gradient) const {
  const std::size_t tokens = x.size() / inputs;
  gemm(transpose({dy, tokens, outputs}), {x, tokens, inputs}, Into::add, weight_gradient);
  for (std::size_t t = 0; t < tokens && !bias_gradient.empty(); ++t)
    for (std::size_t o = 0; o < outputs; ++o) bias_gradient[o] += dy[t * outputs + o];
}

}  // namespace shoal::train
