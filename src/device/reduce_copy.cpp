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

// Whole vectors to aligned places, four at a time; `bytes` is that much at least. No overlap.
void copy_long(std::byte* to, const std::byte* from, std::size_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t step = hn::Lanes(d);
  store(d, load(d, from), to);
  std::size_t i = step - reinterpret_cast<std::uintptr_t>(to) % step;
  for (; i + 4 * step <= bytes; i += 4 * step) {
    const auto a = load(d, from + i), b = load(d, from + i + step);
    const auto c = load(d, from + i + 2 * step), e = load(d, from + i + 3 * step);
    store(d, a, to + i);
    store(d, b, to + i + step);
    store(d, c, to + i + 2 * step);
    store(d, e, to + i + 3 * step);
  }
  for (; i + step <= bytes; i += step) store(d, load(d, from + i), to + i);
  store(d, load(d, from + bytes - step), to + bytes - step);
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace shoal::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::device {
HWY_EXPORT(copy_vectors);
HWY_EXPORT(copy_long);
HWY_EXPORT(target_name);

// The C library copies more than some kilobytes with REP MOVSB where the processor says that this is fast. On AMD's Zen 3 and 4
// it is up to ten times slower than vectors where source and target have nearly the same place in their pages, or where another
// core's cache has the lines (glibc bug 30994).
constexpr std::size_t kCopiedByLibrary = 2048;

void copy(Target target, std::span<const std::byte> source) {
  if (source.empty()) return;
  if (target.also == nullptr && !target.stream) {
    if (target.out == source.data()) return;
    if (source.size() <= kCopiedByLibrary)
      std::memcpy(target.out, source.data(), source.size());
    else
      HWY_DYNAMIC_DISPATCH(copy_long)(static_cast<std::byte*>(target.out), source.data(), source.size());
    return;
  }
  HWY_DYNAMIC_DISPATCH(copy_vectors)(target, source.data(), source.size());
}

const char* instruction_set() { return HWY_DYNAMIC_DISPATCH(target_name)(); }
}  // namespace shoal::device
#endif
