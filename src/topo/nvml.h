// SPDX-License-Identifier: Apache-2.0
// The thin face of NVIDIA's management library, opened at run time: builds and machines without it have no GPUs of that kind to
// tell of. Tests put a fake in its place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shoal::topo {

// Devices by number, 0 <= number < count(). What the library refuses is nothing. One thread.
class Nvml {
 public:
  virtual ~Nvml() = default;
  virtual int count() = 0;
  virtual std::optional<std::string> name(int device) = 0;
  virtual std::optional<std::string> bus_id(int device) = 0;
  virtual std::optional<std::uint64_t> memory_bytes(int device) = 0;
  virtual std::optional<int> compute_capability(int device) = 0;  // major * 10 + minor
  // Bus id at the other end of an NVLink; nothing for a link that is off or that there is not.
  virtual std::optional<std::string> link_peer(int device, int link) = 0;
  virtual std::optional<bool> can_reach(int device, int peer) = 0;  // over NVLink or PCI, reading its memory
  static constexpr int kMostLinks = 18;                             // of a GPU
};

// Nothing where the library is not there or does not start.
std::unique_ptr<Nvml> open_nvml();

}  // namespace shoal::topo
