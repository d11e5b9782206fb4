// SPDX-License-Identifier: Apache-2.0
#include "train/data/fashion_mnist.h"

#include <algorithm>
#include <array>
#include <string>

#include "train/data/gzip.h"
#include "train/data/idx.h"
#include "train/error.h"

namespace shoal::train {
namespace {

// Mean and deviation of the training pixels, as fractions of 255.
constexpr float kMean = 0.2860F;
constexpr float kDeviation = 0.3530F;

constexpr std::size_t kInflatedLimit = std::size_t{1} << 28;  // [bytes]; the largest file has 47 million

const std::array<float, 256>& normalised() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values{};
    for (std::size_t v = 0; v < values.size(); ++v) values[v] = (static_cast<float>(v) / 255.0F - kMean) / kDeviation;
    return values;
  }();
  return table;
}

std::vector<std::uint8_t> load_cells(const std::filesystem::path& path, std::span<const std::size_t> sample_shape) {
  if (!std::filesystem::exists(path)) {
    throw failure(Exit::usage, "{}: no such file (Debian package dataset-fashion-mnist; or name its folder with --data)",
                  path.string());
  }
  const std::vector<std::uint8_t> bytes = read_gzip(path, kInflatedLimit);
  try {
    const Idx idx = parse_idx(bytes, 1 + sample_shape.size());
    if (!std::equal(sample_shape.begin(), sample_shape.end(), idx.dimensions.begin() + 1)) {
      throw failure(Exit::usage, "images are {} x {} pixels, expected 28 x 28", idx.dimensions[1], idx.dimensions[2]);
    }
    return {idx.cells.begin(), idx.cells.end()};
  } catch (const Error& error) {
    throw failure(error.code(), "{}: {}", path.string(), error.what());
  }
}

Images load_part(const std::filesystem::path& folder, const std::string& part) {
  constexpr std::array<std::size_t, 2> kImageShape{kImageSide, kImageSide};
  std::vector<std::uint8_t> pixels = load_cells(folder / (part + "-images-idx3-ubyte.gz"), kImageShape);
  std::vector<std::uint8_t> labels = load_cells(folder / (part + "-labels-idx1-ubyte.gz"), {});
  try {
    return {std::move(pixels), std::move(labels)};
  } catch (const Error& error) {
    throw failure(error.code(), "{}/{}-*: {}", folder.string(), part, error.what());
  }
}

}  // namespace

Images::Images(std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels)
    : pixels_(std::move(pixels)), labels_(std::move(labels)) {
  if (pixels_.size() != labels_.size() * kPixels) {
    throw failure(Exit::usage, "{} labels for {} pixels, expected one for {}", labels_.size(), pixels_.size(), kPixels);
  }
  const auto wrong = std::ranges::find_if(labels_, [](std::uint8_t label) { return label >= kClasses; });
  if (wrong != labels_.end()) {
    throw failure(Exit::usage, "label {} of sample {}, expected less than {}", *wrong, wrong - labels_.begin(), kClasses);
  }
}

void Images::truncate(std::size_t limit) {
  if (limit >= count()) return;
  labels_.resize(limit);
  pixels_.resize(limit * kPixels);
}

void Images::gather(std::span<const std::uint32_t> samples, std::span<float> pixels, std::span<std::uint8_t> labels) const {
  const std::array<float, 256>& table = normalised();
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const auto from = std::span(pixels_).subspan(samples[s] * kPixels, kPixels);
    std::ranges::transform(from, pixels.subspan(s * kPixels, kPixels).begin(), [&](std::uint8_t grey) { return table[grey]; });
    labels[s] = labels_[samples[s]];
  }
}

FashionMnist load_fashion_mnist(const std::filesystem::path& folder) {
  return {.train = load_part(folder, "train"), .test = load_part(folder, "t10k")};
}

}  // namespace shoal::train
