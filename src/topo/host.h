// SPDX-License-Identifier: Apache-2.0
// A host as a job sees it: processors, memory, PCI devices, network interfaces, RDMA devices, GPUs, and the limits it runs under.
// Value types. What is not known is nothing (std::nullopt, an empty text), never a guess: in containers and virtual machines much
// of it is hidden, and nothing that Shoal does needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "topo/processor_set.h"

namespace shoal::topo {

struct Package {
  int number = 0;             // the system's
  std::string model, vendor;  // "AMD EPYC 7763 64-Core Processor", "AuthenticAMD"
  std::optional<int> family, model_number;
  ProcessorSet processors;
  friend bool operator==(const Package&, const Package&) = default;
};

struct Core {
  ProcessorSet processors;  // its hardware threads
  friend bool operator==(const Core&, const Core&) = default;
};

struct Cache {
  int level = 0;
  std::uint64_t bytes = 0;
  ProcessorSet processors;  // that share it
  friend bool operator==(const Cache&, const Cache&) = default;
};

struct NumaNode {
  int number = 0;
  std::optional<std::uint64_t> memory_bytes;
  ProcessorSet processors;
  std::vector<int> distances;  // to each node in the host's order, 10 being local; empty: unknown
  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

// A device, or a bridge on the way to one.
struct PciDevice {
  std::string bus_id;                       // "0000:3b:00.0", lower case
  int parent = -1;                          // index of the bridge above; -1: a root port, or unknown
  std::string class_code, vendor, product;  // "0x030200"
  std::optional<double> speed_GTs, most_GTs;
  std::optional<int> width, most_width;  // lanes
  std::optional<int> numa;               // number of the node it is attached to
  friend bool operator==(const PciDevice&, const PciDevice&) = default;
};

struct Interface {
  std::string name;
  std::optional<bool> up;  // and with a carrier
  bool loopback = false;
  std::optional<std::int64_t> Mbps, mtu;
  std::vector<std::string> addresses;  // IPv4 and IPv6, without prefix length
  int pci = -1;                        // index; -1: none, or unknown
  std::optional<int> numa;
  friend bool operator==(const Interface&, const Interface&) = default;
};

struct Gid {
  int index = 0;
  std::string gid, type, interface;  // type: "RoCE v2", ...
  friend bool operator==(const Gid&, const Gid&) = default;
};

struct RdmaPort {
  int number = 1;
  std::string state, link_layer;  // "ACTIVE"; "InfiniBand" or "Ethernet"
  std::optional<std::int64_t> Mbps;
  std::vector<Gid> gids;  // those that are set
  friend bool operator==(const RdmaPort&, const RdmaPort&) = default;
};

struct RdmaDevice {
  std::string name, guid;
  std::vector<RdmaPort> ports;
  int pci = -1;
  std::optional<int> numa;
  friend bool operator==(const RdmaDevice&, const RdmaDevice&) = default;
};

// NVLink of one GPU to one other, or to the host's switches.
struct GpuLink {
  int peer = kSwitch;  // index of a GPU
  int links = 0;       // bundled
  static constexpr int kSwitch = -1;
  friend bool operator==(const GpuLink&, const GpuLink&) = default;
};

struct Gpu {
  int number = 0;  // the driver's
  std::string name;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<int> compute_capability;  // major * 10 + minor
  std::vector<GpuLink> links;
  std::vector<int> reaches;            // GPUs (by index) whose memory it can map; meaningful where the host's p2p_known
  std::vector<int> performance_ranks;  // of the ways to `reaches`, as CUDA's driver counts them; empty: unknown
  int pci = -1;
  std::optional<int> numa;
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct Limits {
  std::optional<double> cpu_quota;  // processors' worth of time; nothing: none, or unknown
  std::optional<std::uint64_t> shm_bytes, shm_free_bytes;
  std::optional<std::uint64_t> memlock_bytes;  // kUnlimited: no limit
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  friend bool operator==(const Limits&, const Limits&) = default;
};

struct Host {
  std::string name;          // "" where a file does not say
  std::string id;            // same text: same memory can be shared (boot and network namespace)
  std::string architecture;  // "x86_64"
  std::vector<Package> packages;
  std::vector<Core> cores;
  std::vector<Cache> caches;
  std::vector<NumaNode> nodes;
  ProcessorSet processors;  // of the host
  ProcessorSet ours;        // those that this process may use
  std::optional<std::uint64_t> memory_bytes;
  std::vector<PciDevice> pci;  // parents before children
  std::vector<Interface> interfaces;
  std::vector<RdmaDevice> rdma;
  std::vector<Gpu> gpus;
  bool p2p_known = false;
  Limits limits;
  friend bool operator==(const Host&, const Host&) = default;
};

// Ok, or what contradicts itself: "gpus[2].pci is 7: there are 5 devices". What comes from files goes through this.
Status validate(const Host& host);

// From the root port down to the device; empty for -1.
std::vector<int> pci_path(const Host& host, int device);
// Index of the node with this number; -1 if there is none.
int node_index(const Host& host, std::optional<int> number);

// How far two devices are from each other, in NCCL's words: PIX (a bridge between them), PXB (several), PHB (the node's root
// complex), SYS (another node), or nothing where that is not known.
enum class Distance : std::uint8_t { same, pix, pxb, phb, sys, unknown };
std::string_view name_of(Distance distance);
Distance distance(const Host& host, int pci_a, std::optional<int> numa_a, int pci_b, std::optional<int> numa_b);

// Bytes a second, one direction, as data sheets have it; nothing where speed or width is not known.
std::optional<double> pci_Bps(const PciDevice& device);
// Of one NVLink of such a GPU.
double nvlink_Bps(const Gpu& gpu);

}  // namespace shoal::topo
