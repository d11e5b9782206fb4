// SPDX-License-Identifier: Apache-2.0
// What the processes of one job on this host have in common when their launcher gives them no name. Reads /proc.
#pragma once

#include <string>
#include <string_view>

namespace shoal::comm {

// "<pid>.<start time>" of the nearest ancestor whose command name is `launcher` (as the kernel cuts it, 15 bytes); of the parent
// if there is none or `launcher` is empty. The start time tells a process from a later one with the same number.
inline constexpr std::string_view kParentJob = "parent ";  // before it, where a job has no other name
std::string ancestor_job(std::string_view launcher);

}  // namespace shoal::comm
