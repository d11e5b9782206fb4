// SPDX-License-Identifier: Apache-2.0
// The PCI devices that matter, and the bridges above them, from the paths that the kernel gives its devices. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topo/host.h"
#include "topo/system_files.h"

namespace shoal::topo {

class PciTree {
 public:
  explicit PciTree(const SystemFiles& files) : files_(files) {}

  struct Place {
    int pci = -1;
    std::optional<int> numa;
  };
  // Of what `path` leads to, such as /sys/class/net/eth0/device; takes it and the bridges above it in. Virtual devices have none.
  Place place_of(const std::string& path);
  // By bus id, as libraries of vendors name devices: any case, domains of four or eight digits.
  Place place_of_bus_id(const std::string& bus_id);
  // Bus ids of this machine's devices whose class begins so ("0x03").
  std::vector<std::string> with_class(const std::string& prefix) const;

  const std::vector<PciDevice>& devices() const { return devices_; }
  std::vector<PciDevice> take() { return std::move(devices_); }

 private:
  int take_in(const std::string& folder, const std::string& bus_id, int parent);

  const SystemFiles& files_;
  std::vector<PciDevice> devices_;
};

// "00000000:3B:00.0" -> "0000:3b:00.0"; nothing for what is no bus id.
std::optional<std::string> normal_bus_id(const std::string& text);

}  // namespace shoal::topo
