// SPDX-License-Identifier: Apache-2.0
// The thin face of CUDA's driver, opened at run time: it knows who maps whose memory and how good the way is, and names GPUs
// where the management library is missing. No context is made. Tests put a fake in its place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shoal::topo {

// Devices by the driver's numbers, 0 <= number < count(): those that CUDA_VISIBLE_DEVICES leaves, in its order, which need not be
// that of others. What the driver refuses is nothing. One thread.
class CudaDriver {
 public:
  virtual ~CudaDriver() = default;
  virtual int count() = 0;
  virtual std::optional<std::string> name(int device) = 0;
  virtual std::optional<std::string> bus_id(int device) = 0;
  virtual std::optional<std::uint64_t> memory_bytes(int device) = 0;
  virtual std::optional<int> compute_capability(int device) = 0;  // major * 10 + minor
  virtual std::optional<bool> can_reach(int device, int peer) = 0;
  virtual std::optional<int> performance_rank(int device, int peer) = 0;  // of the way from device to peer, as the driver counts
};

// Nothing where the driver is not there or does not start (no GPU, a version that does not fit the kernel's). It stays loaded: it
// cannot be unloaded, and children of fork() cannot use CUDA afterwards. So this is for programs, not for a library in one.
std::unique_ptr<CudaDriver> open_cuda_driver();

}  // namespace shoal::topo
