// SPDX-License-Identifier: Apache-2.0
// Runs a test once for each instruction set that the kernels were compiled for and this machine has. For one thread: the choice
// is the process's.
#pragma once

#include <hwy/targets.h>

#include <cstdint>

namespace shoal::device {

template <class Test>
void for_each_instruction_set(Test test) {
  for (const std::int64_t target : {HWY_SCALAR, HWY_AVX2, HWY_AVX3, HWY_AVX3 | HWY_AVX3_DL}) {
    hwy::SetSupportedTargetsForTest(0);
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & target) != target) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    test();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace shoal::device
