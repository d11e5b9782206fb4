// SPDX-License-Identifier: Apache-2.0
// Integers in units of a scale that makes the largest element of a block the largest integer: 127 in a byte, 7 in half of one;
// rounded to nearest, or at random so that the expected value is the element.
#include "compress/codecs/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/codecs/integers.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "compress/codecs/codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::HWY_NAMESPACE {

using Int8 = Scaled<NearestScale<127>, IntegerCode<8, Nearest>, 128>;
using Int4 = Scaled<NearestScale<7>, IntegerCode<4, Nearest>, 32>;
using Int8AtRandom = Scaled<UpperScale<127>, IntegerCode<8, AtRandom>, 128>;
using Int4AtRandom = Scaled<UpperScale<7>, IntegerCode<4, AtRandom>, 32>;

const Kernels* int8_kernels() { return &kKernels<Int8>; }
const Kernels* int4_kernels() { return &kKernels<Int4>; }
const Kernels* int8_at_random_kernels() { return &kKernels<Int8AtRandom>; }
const Kernels* int4_at_random_kernels() { return &kKernels<Int4AtRandom>; }

}  // namespace shoal::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::compress {
HWY_EXPORT(int8_kernels);
HWY_EXPORT(int4_kernels);
HWY_EXPORT(int8_at_random_kernels);
HWY_EXPORT(int4_at_random_kernels);
static const Kernels& best_int8() { return *HWY_DYNAMIC_DISPATCH(int8_kernels)(); }
static const Kernels& best_int4() { return *HWY_DYNAMIC_DISPATCH(int4_kernels)(); }
static const Kernels& best_int8_at_random() { return *HWY_DYNAMIC_DISPATCH(int8_at_random_kernels)(); }
static const Kernels& best_int4_at_random() { return *HWY_DYNAMIC_DISPATCH(int4_at_random_kernels)(); }

// Half a scale, which is up to 1.004 times max / largest; at random a whole one, up to 1.008 times. Below it half or all of the
// smallest scale, 2^-126.
extern const Codec int8_codec;
constinit const Codec int8_codec =
    dispatched<HWY_NAMESPACE::Int8::kLayout, best_int8>({.name = "int8",
                                                         .about = "integers up to 127, a scale for 128 elements",
                                                         .idempotent = true,
                                                         .bound = {.of_block = 0.5 * 1.004 / 127, .absolute = 0x1p-127}});

extern const Codec int4_codec;
constinit const Codec int4_codec =
    dispatched<HWY_NAMESPACE::Int4::kLayout, best_int4>({.name = "int4",
                                                         .about = "integers up to 7, two a byte, a scale for 32 elements",
                                                         .idempotent = true,
                                                         .bound = {.of_block = 0.5 * 1.004 / 7, .absolute = 0x1p-127}});

extern const Codec int8_stochastic_codec;
constinit const Codec int8_stochastic_codec = dispatched<HWY_NAMESPACE::Int8AtRandom::kLayout, best_int8_at_random>(
    {.name = "int8_stochastic",
     .about = "int8, rounded at random: unbiased",
     .stochastic = true,
     .bound = {.of_block = 1.008 / 127, .absolute = 0x1p-126}});

extern const Codec int4_stochastic_codec;
constinit const Codec int4_stochastic_codec = dispatched<HWY_NAMESPACE::Int4AtRandom::kLayout, best_int4_at_random>(
    {.name = "int4_stochastic",
     .about = "int4, rounded at random: unbiased",
     .stochastic = true,
     .bound = {.of_block = 1.008 / 7, .absolute = 0x1p-126}});
}  // namespace shoal::compress
#endif
