// SPDX-License-Identifier: Apache-2.0
// Reduction and copy kernels on host memory, one set per (DataType, ReduceOp), with run-time choice of the instruction set.
// Pure functions: any thread, no state, no allocation. Pointers need no alignment at all, not even the type's own; out and
// `also` may each equal a or b exactly, other overlap is not allowed.
//
// Numerics: 8- and 16-bit floats are widened to float32, combined, and rounded once (to nearest, ties to even). Integers wrap.
// Max and min propagate NaN and order -0 below +0, so that the result does not depend on which operand came first. A finite
// float16, bfloat16, float32 or float64 sum overflows to infinity as IEEE 754 says; float8 results saturate at the largest finite
// value, as CUDA's conversions do (infinities and NaN of e5m2 and NaN of e4m3 stay what they are).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/types.h"

namespace shoal::device {

// What the scaled operations need besides their operands. Made once per call, see make_scale.
struct Scale {
  double factor64 = 1;            // float64 element type
  float factor32 = 1;             // all other float types: computed in float32, rounded to the element type
  std::uint64_t factor_bits = 1;  // integer premul_sum: the factor, wrapping, in the low bits of the element's width
  std::uint64_t divisor = 1;      // integer avg: the number of ranks
};

// avg: floats are multiplied by 1/world as they are read (never overflows on the way), integers are summed and divided at the
// end. premul_sum: `premul` points at one element of `type`, this rank's factor, and is read here. Other operations: `premul` is
// ignored.
Scale make_scale(DataType type, ReduceOp op, World world, const void* premul);

// Where results go: `out` always; `also` (may be null) receives the same bytes, for a wire. With `stream` the stores to `out`
// go past the caches (worth it when the whole is far larger than the last-level cache); `also` never does.
struct Target {
  void* out;
  void* also = nullptr;
  bool stream = false;
};

using CombineFn = void (*)(Target target, const void* a, const void* b, std::size_t n, const Scale& scale);
using MapFn = void (*)(Target target, const void* a, std::size_t n, const Scale& scale);

// n counts elements. "input" says that operand a is a rank's own unscaled input; "final" that the result is the finished
// reduction. Where an operation scales nothing, several members are the same function.
struct ReduceKernels {
  CombineFn combine;              // a op b
  CombineFn combine_input;        // load(a) op b: bit for bit load_input followed by combine
  CombineFn combine_final;        // finish(a op b): bit for bit combine followed by finish
  CombineFn combine_input_final;  // finish(load(a) op b)
  MapFn load_input;               // load(a): times the factor for float avg and premul_sum, else a copy
  MapFn load_input_final;         // finish(load(a)): a world of one rank
};

const ReduceKernels& kernels(DataType type, ReduceOp op);

// True if load_input changes anything, that is, if raw input must not be sent as it is.
bool scales_input(DataType type, ReduceOp op);

// Plain bytes, same targets.
void copy(Target target, std::span<const std::byte> source);

// The instruction set in use: "AVX2", "AVX3", ...
const char* instruction_set();

}  // namespace shoal::device
