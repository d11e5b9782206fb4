// SPDX-License-Identifier: Apache-2.0
// Where kernels() finds the kernels: one lookup a family of types, each compiled for every instruction set in a file of its own
// so that no single compilation is long. Internal to this folder. Any thread; the tables are constants.
#pragma once

#include "device/reduce.h"

namespace shoal::device {

// kReduceOps entries, in the order of ReduceOp, for the best instruction set of this machine.
const ReduceKernels* integer_kernels(DataType type);
const ReduceKernels* float32_64_kernels(DataType type);
const ReduceKernels* float16_kernels(DataType type);  // float16 and bfloat16
const ReduceKernels* float8_kernels(DataType type);

}  // namespace shoal::device
