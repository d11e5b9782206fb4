// SPDX-License-Identifier: Apache-2.0
#include "topo/nvml.h"

#include <dlfcn.h>

#include <array>

namespace shoal::topo {
namespace {

// What we use of NVIDIA's nvml.h, whose binary interface is stable: names ending in _vN keep their types for ever.
using Device = struct nvmlDevice_st*;
struct PciInfo {
  std::array<char, 16> legacy_bus_id;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> bus_id;
};
struct Memory {
  unsigned long long total, free, used;
};
constexpr int kSuccess = 0, kFeatureEnabled = 1, kP2pRead = 0, kP2pOk = 0;
constexpr unsigned kNameBytes = 96;

class Library : public Nvml {
 public:
  explicit Library(void* handle) : handle_(handle) {
    find(init_, "nvmlInit_v2");
    find(shutdown_, "nvmlShutdown");
    find(count_, "nvmlDeviceGetCount_v2");
    find(device_, "nvmlDeviceGetHandleByIndex_v2");
    find(name_, "nvmlDeviceGetName");
    find(pci_, "nvmlDeviceGetPciInfo_v3");
    find(memory_, "nvmlDeviceGetMemoryInfo");
    find(capability_, "nvmlDeviceGetCudaComputeCapability");
    find(link_state_, "nvmlDeviceGetNvLinkState");
    find(link_pci_, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    find(p2p_, "nvmlDeviceGetP2PStatus");
    started_ = init_ != nullptr && init_() == kSuccess;
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() override {
    if (started_ && shutdown_ != nullptr) shutdown_();
    ::dlclose(handle_);
  }

  bool started() const { return started_; }

  int count() override {
    unsigned n = 0;
    return count_ != nullptr && device_ != nullptr && count_(&n) == kSuccess ? static_cast<int>(n) : 0;
  }
  std::optional<std::string> name(int device) override {
    std::array<char, kNameBytes> text = {};
    const Device handle = at(device);
    if (handle == nullptr || name_ == nullptr || name_(handle, text.data(), kNameBytes - 1) != kSuccess) return std::nullopt;
    return text.data();
  }
  std::optional<std::string> bus_id(int device) override {
    PciInfo pci = {};
    const Device handle = at(device);
    if (handle == nullptr || pci_ == nullptr || pci_(handle, &pci) != kSuccess) return std::nullopt;
    return text_of(pci);
  }
  std::optional<std::uint64_t> memory_bytes(int device) override {
    Memory memory = {};
    const Device handle = at(device);
    if (handle == nullptr || memory_ == nullptr || memory_(handle, &memory) != kSuccess) return std::nullopt;
    return memory.total;
  }
  std::optional<int> compute_capability(int device) override {
    int major = 0, minor = 0;
    const Device handle = at(device);
    if (handle == nullptr || capability_ == nullptr || capability_(handle, &major, &minor) != kSuccess) return std::nullopt;
    return major * 10 + minor;
  }
  std::optional<std::string> link_peer(int device, int link) override {
    int active = 0;
    PciInfo pci = {};
    const Device handle = at(device);
    const unsigned number = static_cast<unsigned>(link);
    if (handle == nullptr || link_state_ == nullptr || link_pci_ == nullptr) return std::nullopt;
    if (link_state_(handle, number, &active) != kSuccess || active != kFeatureEnabled) return std::nullopt;
    if (link_pci_(handle, number, &pci) != kSuccess) return std::nullopt;
    return text_of(pci);
  }
  std::optional<bool> can_reach(int device, int peer) override {
    int status = -1;
    const Device from = at(device), to = at(peer);
    if (from == nullptr || to == nullptr || p2p_ == nullptr || p2p_(from, to, kP2pRead, &status) != kSuccess) return std::nullopt;
    return status == kP2pOk;
  }

 private:
  template <typename Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(handle_, name));
  }
  Device at(int number) {
    Device handle = nullptr;
    return device_ != nullptr && device_(static_cast<unsigned>(number), &handle) == kSuccess ? handle : nullptr;
  }
  static std::string text_of(PciInfo& pci) {
    pci.bus_id.back() = '\0';
    return pci.bus_id.data();
  }

  void* handle_;
  bool started_ = false;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*device_)(unsigned, Device*) = nullptr;
  int (*name_)(Device, char*, unsigned) = nullptr;
  int (*pci_)(Device, PciInfo*) = nullptr;
  int (*memory_)(Device, Memory*) = nullptr;
  int (*capability_)(Device, int*, int*) = nullptr;
  int (*link_state_)(Device, unsigned, int*) = nullptr;
  int (*link_pci_)(Device, unsigned, PciInfo*) = nullptr;
  int (*p2p_)(Device, Device, int, int*) = nullptr;
};

}  // namespace

std::unique_ptr<Nvml> open_nvml() {
  void* handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>(handle);
  if (!library->started()) return nullptr;
  return library;
}

}  // namespace shoal::topo
