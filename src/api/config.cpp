// SPDX-License-Identifier: Apache-2.0
#include "api/config.h"

#include <cstddef>
#include <cstring>

namespace shoal::api {
namespace {

constexpr unsigned kMagic = 0xcafebeef;

// The layout is NCCL's; programs built against its header pass it.
static_assert(sizeof(ncclConfig_t) == 80 && offsetof(ncclConfig_t, blocking) == 16 && offsetof(ncclConfig_t, netName) == 32 &&
              offsetof(ncclConfig_t, splitShare) == 40 && offsetof(ncclConfig_t, commName) == 48 &&
              offsetof(ncclConfig_t, nvlinkCentricSched) == 76);
static_assert(sizeof(ncclUniqueId) == 128 && sizeof(ncclRedOp_t) == 4);

// The first version whose header has the bytes from this offset on.
struct Since {
  std::size_t offset;
  unsigned version;
};
constexpr Since kSince[] = {{offsetof(ncclConfig_t, cgaClusterSize), NCCL_VERSION(2, 17, 0)},
                            {offsetof(ncclConfig_t, splitShare), NCCL_VERSION(2, 18, 0)},
                            {offsetof(ncclConfig_t, trafficClass), NCCL_VERSION(2, 26, 0)},
                            {offsetof(ncclConfig_t, commName), NCCL_VERSION(2, 27, 0)},
                            {offsetof(ncclConfig_t, nChannelsPerNetPeer), NCCL_VERSION(2, 28, 0)}};

Status check(const ncclConfig_t& config) {
  const auto range = [](const char* name, int value, int low, int high) {
    if (value == NCCL_CONFIG_UNDEF_INT || (value >= low && value <= high)) return Status();
    return fail(Code::invalid_argument, "config.{} is {}, allowed are {} to {}", name, value, low, high);
  };
  constexpr int kMost = 1 << 20;
  for (Status s : {range("blocking", config.blocking, 0, 1), range("splitShare", config.splitShare, 0, 1),
                   range("shrinkShare", config.shrinkShare, 0, 1), range("minCTAs", config.minCTAs, 1, kMost),
                   range("maxCTAs", config.maxCTAs, 1, kMost), range("cgaClusterSize", config.cgaClusterSize, 0, 8),
                   range("CTAPolicy", config.CTAPolicy, 0, 3)})
    if (!s.is_ok()) return s;
  if (config.minCTAs != NCCL_CONFIG_UNDEF_INT && config.maxCTAs != NCCL_CONFIG_UNDEF_INT && config.minCTAs > config.maxCTAs)
    return fail(Code::invalid_argument, "config.minCTAs is {}, more than maxCTAs, {}", config.minCTAs, config.maxCTAs);
  return {};
}

}  // namespace

Result<ncclConfig_t> read_config(const ncclConfig_t* config) {
  ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
  if (config == nullptr) return known;
  std::size_t size = 0;
  std::memcpy(&size, config, sizeof size);
  if (size < offsetof(ncclConfig_t, blocking))
    return fail(Code::invalid_argument, "config.size is {}: start from NCCL_CONFIG_INITIALIZER", size);
  if (config->magic != kMagic)
    return fail(Code::invalid_argument, "config.magic is {:#x}: start from NCCL_CONFIG_INITIALIZER", config->magic);

  std::size_t trusted = std::min(size, sizeof known);
  for (const Since& since : kSince)
    if (config->version < since.version) trusted = std::min(trusted, since.offset);
  std::memcpy(&known, config, trusted);
  if (Status s = check(known); !s.is_ok()) return s;
  return known;
}

}  // namespace shoal::api
