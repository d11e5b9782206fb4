// SPDX-License-Identifier: Apache-2.0
#include "train/nn/conv3x3.h"

#include "train/nn/gemm.h"
#include "train/nn/rowwise.h"

namespace shoal::train {
namespace {

// The part of one of a patch's three image rows that lies inside the image: with channels innermost, neighbours are contiguous.
struct Run {
  std::size_t in_image;  // [elements] from the image's first
  std::size_t in_patch;  // [elements] from the patch's first
  std::size_t length;    // [elements]
};

// Calls body(position, run) for every position of a (side, side, channels) image, row by row.
template <typename Body>
void for_each_run(std::size_t side, std::size_t channels, Body&& body) {
  for (std::size_t y = 0; y < side; ++y) {
    for (std::size_t x = 0; x < side; ++x) {
      const std::size_t first = x == 0 ? 1 : 0, last = x + 1 == side ? 2 : 3;  // columns of the patch that exist
      for (std::size_t ky = y == 0 ? 1 : 0; ky < (y + 1 == side ? 2U : 3U); ++ky) {
        body(y * side + x, Run{.in_image = ((y + ky - 1) * side + x + first - 1) * channels,
                               .in_patch = (ky * 3 + first) * channels,
                               .length = (last - first) * channels});
      }
    }
  }
}

}  // namespace

Conv3x3::Conv3x3(std::string name, std::size_t side, std::size_t in, std::size_t out, bool starts)
    : starts_(starts),
      name_(std::move(name)),
      side_(side),
      in_(in),
      out_(out),
      patches_(kSampleBlock * side * side * 9 * in),
      block_gradient_(9 * in * out) {}

std::vector<TensorSpec> Conv3x3::tensors() const {
  return {{.name = name_ + ".weight", .shape = {out_, 3, 3, in_}, .fan_in = starts_ ? patch() : 0},
          {.name = name_ + ".bias", .shape = {out_}}};
}

void Conv3x3::bind(std::span<float> values, std::span<float> gradients) {
  const std::size_t weights = out_ * patch();
  weight_ = values.first(weights);
  bias_ = values.subspan(weights);
  weight_gradient_ = gradients.first(weights);
  bias_gradient_ = gradients.subspan(weights);
}

std::span<float> Conv3x3::unfold(std::size_t count, std::span<const float> images) {
  const std::size_t positions = side_ * side_;
  const auto patches = std::span(patches_).first(count * positions * patch());
  std::ranges::fill(patches, 0.0F);  // the border, which no run covers
  for (std::size_t n = 0; n < count; ++n) {
    const float* image = images.subspan(n * input_size()).data();
    float* rows_of_image = patches.subspan(n * positions * patch()).data();
    for_each_run(side_, in_, [&](std::size_t position, const Run& run) {
      std::copy_n(image + run.in_image, run.length, rows_of_image + position * patch() + run.in_patch);
    });
  }
  return patches;
}

void Conv3x3::fold(std::size_t count, std::span<const float> patches, std::span<float> images) const {
  std::ranges::fill(images, 0.0F);
  for (std::size_t n = 0; n < count; ++n) {
    float* image = images.subspan(n * input_size()).data();
    const float* rows_of_image = patches.subspan(n * side_ * side_ * patch()).data();
    for_each_run(side_, in_, [&](std::size_t position, const Run& run) {
      const float* from = rows_of_image + position * patch() + run.in_patch;
      for (std::size_t i = 0; i < run.length; ++i) image[run.in_image + i] += from[i];
    });
  }
}

void Conv3x3::forward(std::size_t samples, std::span<const float> input, std::span<float> output) {
  fill_rows(bias_, output);
  for_each_block(samples, [&](std::size_t first, std::size_t count) {
    const auto patches = unfold(count, rows(input, input_size(), first, count));
    gemm({patches, count * side_ * side_, patch()}, transpose({weight_, out_, patch()}), Into::add,
         rows(output, output_size(), first, count));
  });
}

void Conv3x3::backward(std::size_t samples, const Pass& pass, std::span<float> input_gradient) {
  const std::size_t positions = side_ * side_;
  for_each_block(samples, [&](std::size_t first, std::size_t count) {
    const auto dy = rows(pass.output_gradient, output_size(), first, count);
    const auto patches = unfold(count, rows(pass.input, input_size(), first, count));
    gemm(transpose({dy, count * positions, out_}), {patches, count * positions, patch()}, Into::overwrite, block_gradient_);
    add_block(block_gradient_, weight_gradient_);
    const auto bias = std::span(block_gradient_).first(out_);
    column_sums(dy, bias);
    add_block(bias, bias_gradient_);
    if (input_gradient.empty()) return;
    gemm({dy, count * positions, out_}, {weight_, out_, patch()}, Into::overwrite, patches);
    fold(count, patches, rows(input_gradient, input_size(), first, count));
  });
}

}  // namespace shoal::train
