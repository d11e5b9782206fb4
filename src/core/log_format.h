// SPDX-License-Identifier: Apache-2.0
// The small languages of NCCL_DEBUG's relatives: which parts log, which lines carry the time, and how it is written. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::log {

// The parts of a library that may log, by NCCL's names. Several have no counterpart here.
enum class Subsystem : std::uint8_t {
  init,
  coll,
  p2p,
  shm,
  net,
  graph,
  tuning,
  env,
  alloc,
  alloc_host,
  call,
  proxy,
  nvls,
  bootstrap,
  reg,
  profile,
  ras,
  destroy
};

// Bit i: the i-th subsystem. A list of names in any case, separated by commas; ALL is all; ^ in front: all but these. A name that
// is not known counts for nothing, as newer libraries have more of them.
std::uint32_t subsystems_from(std::string_view list);
// The same of VERSION, WARN, INFO, ABORT and TRACE; bit n: the level whose number is n.
std::uint32_t levels_from(std::string_view list);

// As strftime with UTC's calendar and English names; %1f to %9f: that many digits of the second's fraction. By hand: the C
// library's calendar takes a lock that a fork could copy while it is held. What is not known stays as it is.
std::string format_time(std::string_view format, std::chrono::system_clock::time_point when);

}  // namespace shoal::log
