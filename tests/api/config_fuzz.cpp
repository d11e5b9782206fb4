// SPDX-License-Identifier: Apache-2.0
// A caller's ncclConfig_t of any version: the first bytes are its `size`, as many bytes (4 KiB at most) are its memory and no
// more, so that a read beyond them is found. The answer is invalid_argument, or a configuration within its bounds.
#include <nccl.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "api/config.h"

namespace {

void require(bool held) {
  if (!held) std::abort();
}

bool within(int value, int low, int high) { return value == NCCL_CONFIG_UNDEF_INT || (value >= low && value <= high); }

// A caller's size is what it has: a small one is kept as it is drawn, a large one is made to fit.
std::vector<std::uint8_t> memory_of(const std::uint8_t* data, std::size_t bytes) {
  constexpr std::size_t kLargest = 4096;
  std::size_t size = 0;
  std::memcpy(&size, data, std::min(bytes, sizeof size));
  size %= kLargest;
  std::vector<std::uint8_t> memory(std::max(size, sizeof size));
  std::memcpy(memory.data(), data, std::min(bytes, memory.size()));
  std::memcpy(memory.data(), &size, sizeof size);
  return memory;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  std::vector<std::uint8_t> memory = memory_of(data, bytes);
  // The magic and the version are hard to guess: every other input has them right.
  if (bytes % 2 == 0 && memory.size() >= 16) {
    const unsigned magic = 0xcafebeef;
    std::memcpy(memory.data() + 8, &magic, sizeof magic);
    unsigned version = 0;
    std::memcpy(&version, memory.data() + 12, sizeof version);
    version %= 30000;
    std::memcpy(memory.data() + 12, &version, sizeof version);
  }
  // The struct is eight-byte aligned at its caller, as it is on the heap.
  shoal::Result<ncclConfig_t> read = shoal::api::read_config(reinterpret_cast<const ncclConfig_t*>(memory.data()));
  if (!read.is_ok()) {
    require(read.status().code() == shoal::Code::invalid_argument && !read.status().text().empty());
    return 0;
  }
  const ncclConfig_t& config = *read;
  require(within(config.blocking, 0, 1) && within(config.splitShare, 0, 1) && within(config.shrinkShare, 0, 1) &&
          within(config.cgaClusterSize, 0, 8) && within(config.CTAPolicy, 0, 3));
  if (config.minCTAs != NCCL_CONFIG_UNDEF_INT && config.maxCTAs != NCCL_CONFIG_UNDEF_INT)
    require(config.minCTAs <= config.maxCTAs);
  return 0;
}
