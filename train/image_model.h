// SPDX-License-Identifier: Apache-2.0
// A classifier of images with what a pass over samples needs: its network, room for labels and for the gradient of the logits.
// Belongs to one thread.
#pragma once

#include <string_view>
#include <vector>

#include "train/data/fashion_mnist.h"
#include "train/nn/models.h"
#include "train/nn/softmax.h"
#include "train/parallel/share.h"

namespace shoal::train {

class ImageModel {
 public:
  // `capacity`: the most samples of a pass. As make_network.
  ImageModel(std::string_view name, std::size_t capacity, std::uint64_t seed)
      : network_(make_network(name, capacity, seed)), labels_(capacity), logit_gradient_(capacity * network_.output_size()) {}

  Network& network() { return network_; }

  // Forward and backward of samples of `images`, each of that weight in the loss; `ready`, `into`: as Network::backward's.
  Score gradients(const Images& images, std::span<const std::uint32_t> samples, double weight, const Network::Ready& ready,
                  Into into = Into::overwrite);
  // The score of a rank's share of `images`, without training.
  Score evaluate(const Images& images, Seat seat);

 private:
  Score forward(const Images& images, std::span<const std::uint32_t> samples, double weight, std::span<float> gradient);

  Network network_;
  std::vector<std::uint8_t> labels_;  // of the samples under way
  std::vector<float> logit_gradient_;
};

}  // namespace shoal::train
