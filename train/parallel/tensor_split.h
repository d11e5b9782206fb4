// SPDX-License-Identifier: Apache-2.0
// What follows from splitting matrices over ranks, whoever communicates: what has to divide, which gradients are incomplete, what
// a step sends.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "train/model/gpt_shape.h"
#include "train/model/tensor_group.h"
#include "train/nn/tensor.h"
#include "train/parallel/volume.h"

namespace shoal::train {

// With sequence parallelism, after backward: a tensor that every rank has (norms, biases after matrices that are split by rows)
// was fed with each rank's share of the rows, and its gradient is a part. Sums the parts over the group, in one all-reduce.
void sum_replicated_gradients(TensorGroup& group, std::span<const Tensor> tensors, std::span<float> gradients);

// Throws Error (Exit::usage) naming both numbers if the model does not divide over `world` ranks of `option` ("--tp"). `rows`: of
// a batch, that have to divide with sequence parallelism; else 0.
void check_tensor_parallel(const GptShape& shape, std::size_t world, std::size_t rows, std::string_view option);

// Of a step with `rows` rows, a rank.
std::vector<Volume> tensor_parallel_volume(const GptShape& shape, std::size_t rows, std::size_t world, bool sequence_parallel);

}  // namespace shoal::train
