// SPDX-License-Identifier: Apache-2.0
#include "topo/cuda_driver.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>

namespace shoal::topo {
namespace {

// What we use of the driver's cuda.h, whose binary interface is stable: results, devices and attributes are ints.
constexpr int kSuccess = 0, kCapabilityMajor = 75, kCapabilityMinor = 76, kPerformanceRank = 1;
constexpr std::size_t kTextBytes = 256;

class Library : public CudaDriver {
 public:
  explicit Library(void* handle) : handle_(handle) {
    find(init_, "cuInit");
    find(count_, "cuDeviceGetCount");
    find(device_, "cuDeviceGet");
    find(name_, "cuDeviceGetName");
    find(bus_id_, "cuDeviceGetPCIBusId");
    find(memory_, "cuDeviceTotalMem_v2");
    find(attribute_, "cuDeviceGetAttribute");
    find(reach_, "cuDeviceCanAccessPeer");
    find(p2p_, "cuDeviceGetP2PAttribute");
    started_ = init_ != nullptr && init_(0) == kSuccess;
  }

  bool started() const { return started_; }

  int count() override {
    int n = 0;
    return count_ != nullptr && device_ != nullptr && count_(&n) == kSuccess && n > 0 ? n : 0;
  }
  std::optional<std::string> name(int device) override { return text(name_, device); }
  std::optional<std::string> bus_id(int device) override { return text(bus_id_, device); }
  std::optional<std::uint64_t> memory_bytes(int device) override {
    std::size_t bytes = 0;
    const auto handle = at(device);
    if (!handle || memory_ == nullptr || memory_(&bytes, *handle) != kSuccess) return std::nullopt;
    return bytes;
  }
  std::optional<int> compute_capability(int device) override {
    int major = 0, minor = 0;
    const auto handle = at(device);
    if (!handle || attribute_ == nullptr || attribute_(&major, kCapabilityMajor, *handle) != kSuccess ||
        attribute_(&minor, kCapabilityMinor, *handle) != kSuccess)
      return std::nullopt;
    return major * 10 + minor;
  }
  std::optional<bool> can_reach(int device, int peer) override {
    int can = 0;
    const auto from = at(device), to = at(peer);
    if (!from || !to || reach_ == nullptr || reach_(&can, *from, *to) != kSuccess) return std::nullopt;
    return can != 0;
  }
  std::optional<int> performance_rank(int device, int peer) override {
    int rank = 0;
    const auto from = at(device), to = at(peer);
    if (!from || !to || p2p_ == nullptr || p2p_(&rank, kPerformanceRank, *from, *to) != kSuccess || rank < 0) return std::nullopt;
    return rank;
  }

 private:
  using Text = int(char*, int, int);

  template <typename Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(handle_, name));
  }
  std::optional<int> at(int number) {
    int device = 0;
    return device_ != nullptr && device_(&device, number) == kSuccess ? std::optional(device) : std::nullopt;
  }
  std::optional<std::string> text(Text* of, int device) {
    std::array<char, kTextBytes> bytes = {};
    const auto handle = at(device);
    if (!handle || of == nullptr || of(bytes.data(), kTextBytes - 1, *handle) != kSuccess) return std::nullopt;
    return bytes.data();
  }

  void* handle_;
  bool started_ = false;
  int (*init_)(unsigned) = nullptr;
  int (*count_)(int*) = nullptr;
  int (*device_)(int*, int) = nullptr;
  Text* name_ = nullptr;
  Text* bus_id_ = nullptr;
  int (*memory_)(std::size_t*, int) = nullptr;
  int (*attribute_)(int*, int, int) = nullptr;
  int (*reach_)(int*, int, int) = nullptr;
  int (*p2p_)(int*, int, int, int) = nullptr;
};

}  // namespace

std::unique_ptr<CudaDriver> open_cuda_driver() {
  void* handle = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>(handle);
  if (!library->started()) return nullptr;
  return library;
}

}  // namespace shoal::topo
