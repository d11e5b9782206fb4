// SPDX-License-Identifier: Apache-2.0
// Which instruction sets this machine has, for Highway's dispatch: what its headers ask of libhwy. The library itself measures
// the resolution of the clock whenever it is loaded, 3.4 ms that every process of a job would wait for; nothing else of it is
// needed. On other processors than x86 it is linked.
#include <hwy/targets.h>

#include <atomic>
#include <cstdint>

#if HWY_ARCH_X86
namespace hwy {
namespace {

std::atomic<std::int64_t> targets_for_test{0};

// As Highway's headers compile for them (its set_macros-inl.h). Two parts that Clang 14 cannot ask for have come with others:
// F16C is older than AVX2, and whoever has VPCLMULQDQ and VBMI2 has VAES.
std::int64_t targets_of_this_machine() {
  std::int64_t targets = HWY_SCALAR;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
  if (!avx2) return targets;
  targets |= HWY_AVX2;
  const bool avx3 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd");
  if (!avx3) return targets;
  targets |= HWY_AVX3;
  const bool later = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("vpclmulqdq") &&
                     __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
                     __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512bitalg");
  return later ? targets | HWY_AVX3_DL : targets;
}

}  // namespace

std::int64_t SupportedTargets() {
  const std::int64_t wanted = targets_for_test.load();
  return wanted != 0 ? wanted : targets_of_this_machine();
}

void SetSupportedTargetsForTest(std::int64_t targets) { targets_for_test.store(targets); }

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
#endif
