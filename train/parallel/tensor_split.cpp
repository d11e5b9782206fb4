// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/tensor_split.h"

#include <algorithm>

#include "train/error.h"

namespace shoal::train {
namespace {

bool is_replicated(const Tensor& tensor) { return tensor.spec.whole.empty(); }

}  // namespace

void sum_replicated_gradients(TensorGroup& group, std::span<const Tensor> tensors, std::span<float> gradients) {
  std::vector<float> packed;
  for (const Tensor& each : tensors)
    if (is_replicated(each)) {
      const auto values = gradients.subspan(each.offset, each.count);
      packed.insert(packed.end(), values.begin(), values.end());
    }
  group.all_reduce_sum(packed);
  std::span<const float> left = packed;
  for (const Tensor& each : tensors)
    if (is_replicated(each)) {
      std::ranges::copy(left.first(each.count), gradients.begin() + static_cast<std::ptrdiff_t>(each.offset));
      left = left.subspan(each.count);
    }
}

void check_tensor_parallel(const GptShape& shape, std::size_t world, std::size_t rows, std::string_view option) {
  const auto check = [&](std::size_t count, std::string_view what, std::string_view remedy) {
    if (count % world != 0)
      throw failure(Exit::usage, "{} {} do not divide over {} ranks of {}: {}", count, what, world, option, remedy);
  };
  check(shape.heads, "heads", "choose --heads, or the ranks, so that each has as many");
  check(shape.hidden, "values of the hidden layer", "choose --hidden to be a multiple");
  check(shape.vocabulary, "rows of the vocabulary", "pad it: --vocabulary with the next multiple");
  check(rows, "rows of a batch (sequences x tokens)", "--sequence-parallel wants --batch x --length to be a multiple");
}

std::vector<Volume> tensor_parallel_volume(const GptShape& shape, std::size_t rows, std::size_t world, bool sequence_parallel) {
  const std::uint64_t numbers = rows * sizeof(float), vectors = shape.width * numbers;  // of all rows
  const auto shared = [&](std::uint64_t bytes) { return bytes * (world - 1) / world; };
  const auto reduced = [&](std::uint64_t bytes) { return 2 * bytes * (world - 1) / world; };
  const std::uint64_t l = shape.layers;
  const Volume loss{Moves::all_reduce, 2, reduced(numbers) + reduced(2 * numbers), "3 numbers a token for the cross entropy"};
  if (!sequence_parallel)
    return {{Moves::all_reduce, 4 * l + 2, (4 * l + 2) * reduced(vectors), "4 a layer, embedding, head"}, loss};
  // Of a block: two norms (gain, bias) and the biases after the two matrices split by rows; of the head: a norm.
  const std::uint64_t replicated = (6 * l + 2) * shape.width * sizeof(float);
  return {{Moves::all_gather, 6 * l + 3, (6 * l + 3) * shared(vectors),
           "4 a layer and 2 again for the gradients of matrices, embedding, 2 of the head"},
          {Moves::reduce_scatter, 4 * l + 2, (4 * l + 2) * shared(vectors), "4 a layer, embedding, head"},
          loss,
          {Moves::all_reduce, 1, reduced(replicated), "gradients of norms and biases that all ranks have"}};
}

}  // namespace shoal::train
