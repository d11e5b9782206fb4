// SPDX-License-Identifier: Apache-2.0
#include "train/piece.h"

namespace shoal::train {
namespace {

// FNV-1a over words.
std::uint64_t mix(std::uint64_t hash, std::uint64_t word) { return (hash ^ word) * 0x100000001b3; }

}  // namespace

std::uint64_t place_key(const Piece& piece) {
  std::uint64_t key = 0xcbf29ce484222325;
  for (const char c : piece.name) key = mix(key, static_cast<unsigned char>(c));
  for (const std::size_t each : {piece.columns, piece.first_row, piece.first_column, piece.columns_here, piece.values.size()})
    key = mix(key, each);
  return key | 1;
}

Piece whole_piece(const Tensor& tensor, std::span<float> values, std::span<float> gradients, std::span<float> first,
                  std::span<float> second) {
  const TensorSpec& spec = tensor.spec;
  const auto here = [&](std::span<float> arena) { return arena.empty() ? arena : arena.subspan(tensor.offset, tensor.count); };
  const std::vector<std::size_t>& shape = spec.whole.empty() ? spec.shape : spec.whole;
  return {.name = spec.name,
          .shape = shape,
          .columns = shape.back(),
          .first_row = spec.first.size() > 1 ? spec.first.front() : 0,
          .first_column = spec.first.empty() ? 0 : spec.first.back(),
          .columns_here = spec.shape.back(),
          .decays = spec.fan_in > 0,
          .values = here(values),
          .gradients = here(gradients),
          .first = here(first),
          .second = here(second)};
}

Piece run_of(const Tensor& tensor, std::size_t begin, std::span<float> values, std::span<float> gradients, std::span<float> first,
             std::span<float> second) {
  return {.name = tensor.spec.name,
          .shape = tensor.spec.shape,
          .first_row = begin,
          .decays = tensor.spec.fan_in > 0,
          .values = values,
          .gradients = gradients,
          .first = first,
          .second = second};
}

}  // namespace shoal::train
