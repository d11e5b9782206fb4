// SPDX-License-Identifier: Apache-2.0
// Fashion-MNIST: 60,000 + 10,000 grey images of 28 x 28 pixels, ten kinds of clothing (Xiao, Rasul, Vollgraf 2017). Immutable
// after loading, so safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace shoal::train {

inline constexpr std::size_t kImageSide = 28;
inline constexpr std::size_t kPixels = kImageSide * kImageSide;
inline constexpr std::size_t kClasses = 10;

// Where Debian's package dataset-fashion-mnist puts the four files.
inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";

class Images {
 public:
  // Checks that both have the same number of samples and every label is below kClasses.
  Images(std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels);

  std::size_t count() const { return labels_.size(); }
  std::span<const std::uint8_t> labels() const { return labels_; }
  // Keeps only the first `limit` samples.
  void truncate(std::size_t limit);

  // pixels: (samples, kPixels), scaled to mean 0 and deviation 1 over the training set; labels: (samples).
  void gather(std::span<const std::uint32_t> samples, std::span<float> pixels, std::span<std::uint8_t> labels) const;

 private:
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t> labels_;
};

struct FashionMnist {
  Images train;
  Images test;
};

// Throws Error (Exit::usage) that names the file and the Debian package.
FashionMnist load_fashion_mnist(const std::filesystem::path& folder);

}  // namespace shoal::train
