// SPDX-License-Identifier: Apache-2.0
#include "train/nn/max_pool.h"

namespace shoal::train {
namespace {

// Calls body(out, in) for every output value; `in` is its upper left input. Images follow each other, so that with an even side
// the rows of all samples are one tall image.
template <typename Body>
void for_each_square(std::size_t tall, std::size_t side, std::size_t channels, Body&& body) {
  std::size_t out = 0;
  for (std::size_t y = 0; y < tall; y += 2) {
    for (std::size_t x = 0; x < side; x += 2) {
      for (std::size_t c = 0; c < channels; ++c) body(out++, (y * side + x) * channels + c);
    }
  }
}

}  // namespace

void MaxPool::forward(std::size_t samples, std::span<const float> input, std::span<float> output) {
  const std::size_t right = channels_, below = side_ * channels_;
  for_each_square(samples * side_, side_, channels_, [&](std::size_t out, std::size_t in) {
    output[out] = std::max(std::max(input[in], input[in + right]), std::max(input[in + below], input[in + below + right]));
  });
}

void MaxPool::backward(std::size_t samples, const Pass& pass, std::span<float> input_gradient) {
  const std::size_t right = channels_, below = side_ * channels_;
  std::ranges::fill(input_gradient, 0.0F);
  for_each_square(samples * side_, side_, channels_, [&](std::size_t out, std::size_t in) {
    for (const std::size_t at : {in, in + right, in + below, in + below + right}) {
      if (pass.input[at] != pass.output[out]) continue;
      input_gradient[at] = pass.output_gradient[out];
      return;
    }
  });
}

}  // namespace shoal::train
