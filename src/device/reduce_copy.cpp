// SPDX-License-Identifier: Apache-2.0
// Copies, and the name of the instruction set.
#include "device/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/reduce_copy.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "device/reduce_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::device::HWY_NAMESPACE {

void copy_vectors(Target to, const std::byte* source, std::size_t bytes) {
  transform(hn::ScalableTag<std::uint8_t>(), to, bytes, Identity(Scale()), source);
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace shoal::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::device {
HWY_EXPORT(copy_vectors);
HWY_EXPORT(target_name);

void copy(Target target, std::span<const std::byte> source) {
  if (source.empty()) return;
  if (target.also == nullptr && !target.stream) {
    if (target.out != source.data()) std::memcpy(target.out, source.data(), source.size());
    return;
  }
  HWY_DYNAMIC_DISPATCH(copy_vectors)(target, source.data(), source.size());
}

const char* instruction_set() { return HWY_DYNAMIC_DISPATCH(target_name)(); }
}  // namespace shoal::device
#endif
