// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 of three GPUs: 0 and 1 map each other's memory, nobody that of 2. FAKE_CUDA_INIT: what cuInit answers.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {

int cuInit(unsigned flags) {
  const char* answer = std::getenv("FAKE_CUDA_INIT");
  return flags != 0 ? 1 : answer != nullptr ? std::atoi(answer) : 0;
}
int cuDeviceGetCount(int* count) {
  *count = 3;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {  // handles are not numbers
  *device = 100 + ordinal;
  return ordinal < 3 ? 0 : 101;
}
int cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<std::size_t>(length), "Fake GPU %d", device);
  return 0;
}
int cuDeviceGetPCIBusId(char* id, int length, int device) {
  std::snprintf(id, static_cast<std::size_t>(length), "0001:%02X:00.0", device);
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  *bytes = std::size_t{80} << 30;
  return device == 102 ? 999 : 0;  // unknown of the last
}
int cuDeviceGetAttribute(int* value, int attribute, int /*device*/) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : -1;
  return *value < 0 ? 1 : 0;
}
int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device + peer == 201 ? 1 : 0;
  return 0;
}
int cuDeviceGetP2PAttribute(int* value, int attribute, int device, int peer) {
  *value = device < peer ? 2 : 1;
  return attribute == 1 ? 0 : 1;
}
}
