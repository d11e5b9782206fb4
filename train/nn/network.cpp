// SPDX-License-Identifier: Apache-2.0
#include "train/nn/network.h"

#include <fmt/format.h>

#include <stdexcept>

namespace shoal::train {
namespace {

// sum[i] += values[i]
void add(std::span<const float> values, std::span<float> sum) {
  for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
}

}  // namespace

Network::Network(Layers layers, std::size_t capacity)
    : layers_(std::move(layers.layers)), skips_(std::move(layers.skips)), capacity_(capacity), flowing_over_(skips_.size()) {
  std::size_t widest = 0;
  activations_.emplace_back(capacity * input_size());
  for (const auto& layer : layers_) {
    if (layer->input_size() * capacity != activations_.back().size()) {
      throw std::logic_error(fmt::format("a layer of {} inputs behind one of {} outputs", layer->input_size(),
                                         activations_.back().size() / capacity));
    }
    offsets_.push_back(tensors_.empty() ? 0 : tensors_.back().offset + tensors_.back().count);
    for (TensorSpec& spec : layer->tensors()) append(tensors_, std::move(spec));
    activations_.emplace_back(capacity * layer->output_size());
    widest = std::max({widest, activations_[activations_.size() - 2].size(), activations_.back().size()});
  }
  offsets_.push_back(tensors_.empty() ? 0 : tensors_.back().offset + tensors_.back().count);
  values_.resize(offsets_.back());
  gradients_.resize(offsets_.back());
  flowing_in_.resize(widest);
  flowing_out_.resize(widest);
  for (std::size_t s = 0; s < skips_.size(); ++s) {
    if (activations_[skips_[s].from].size() != activations_[skips_[s].to + 1].size())
      throw std::logic_error(fmt::format("a skip from layer {} to layer {}, whose sizes differ", skips_[s].from, skips_[s].to));
    flowing_over_[s].resize(activations_[skips_[s].from].size());
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const std::size_t count = offsets_[l + 1] - offsets_[l];
    layers_[l]->bind(values().subspan(offsets_[l], count), gradients().subspan(offsets_[l], count));
  }
}

std::span<float> Network::activations(std::size_t layer, std::size_t samples) {
  return std::span(activations_[layer]).first(activations_[layer].size() / capacity_ * samples);
}

std::span<float> Network::input(std::size_t samples) { return activations(0, samples); }

std::span<const float> Network::forward(std::size_t samples) {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    layers_[l]->forward(samples, activations(l, samples), activations(l + 1, samples));
    for (const Skip& skip : skips_)
      if (skip.to == l) add(activations(skip.from, samples), activations(l + 1, samples));
  }
  return activations(layers_.size(), samples);
}

void Network::backward(std::size_t samples, std::span<const float> output_gradient, const Ready& ready, Into into) {
  if (into == Into::overwrite) std::ranges::fill(gradients_, 0.0F);
  std::ranges::copy(output_gradient, flowing_in_.begin());
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer::Pass pass{.input = activations(l, samples),
                           .output = activations(l + 1, samples),
                           .output_gradient = std::span(flowing_in_).first(activations(l + 1, samples).size())};
    for (std::size_t s = 0; s < skips_.size(); ++s)
      if (skips_[s].to == l) std::ranges::copy(pass.output_gradient, flowing_over_[s].begin());
    layers_[l]->backward(samples, pass, l == 0 ? std::span<float>() : std::span(flowing_out_).first(pass.input.size()));
    for (std::size_t s = 0; s < skips_.size() && l > 0; ++s)
      if (skips_[s].from == l) add(std::span(flowing_over_[s]).first(pass.input.size()), flowing_out_);
    if (offsets_[l] != offsets_[l + 1]) ready(offsets_[l]);
    std::swap(flowing_in_, flowing_out_);
  }
}

}  // namespace shoal::train
