// SPDX-License-Identifier: Apache-2.0
// QSGD (Alistarh et al. 2017): levels of norm / s, where norm is the Euclidean one of a bucket of 512 elements, rounded at
// random. The variance is at most min(d / s^2, sqrt(d) / s) norm^2 for d elements. Codes have a fixed width instead of Elias's
// code.
#include "compress/codecs/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/codecs/qsgd.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "compress/codecs/codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::HWY_NAMESPACE {

using Qsgd = Scaled<NormScale<127>, IntegerCode<8, AtRandom>, 512>;
using Qsgd4 = Scaled<NormScale<7>, IntegerCode<4, AtRandom>, 512>;

const Kernels* qsgd_kernels() { return &kKernels<Qsgd>; }
const Kernels* qsgd4_kernels() { return &kKernels<Qsgd4>; }

}  // namespace shoal::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::compress {
HWY_EXPORT(qsgd_kernels);
HWY_EXPORT(qsgd4_kernels);
static const Kernels& best_qsgd() { return *HWY_DYNAMIC_DISPATCH(qsgd_kernels)(); }
static const Kernels& best_qsgd4() { return *HWY_DYNAMIC_DISPATCH(qsgd4_kernels)(); }

// A level: the norm is at most sqrt(512) = 22.6274... times the largest element.
extern const Codec qsgd_codec;
constinit const Codec qsgd_codec =
    dispatched<HWY_NAMESPACE::Qsgd::kLayout, best_qsgd>({.name = "qsgd",
                                                         .about = "127 levels of a bucket's norm, rounded at random: unbiased",
                                                         .stochastic = true,
                                                         .bound = {.of_block = 22.6275 / 127, .absolute = 0x1p-126}});

extern const Codec qsgd4_codec;
constinit const Codec qsgd4_codec =
    dispatched<HWY_NAMESPACE::Qsgd4::kLayout, best_qsgd4>({.name = "qsgd4",
                                                           .about = "7 levels of a bucket's norm, two a byte: unbiased",
                                                           .stochastic = true,
                                                           .bound = {.of_block = 22.6275 / 7, .absolute = 0x1p-126}});
}  // namespace shoal::compress
#endif
