// SPDX-License-Identifier: Apache-2.0
// Asks for functions weakly, as programs do that also run with older libraries: what is there has an address, what no version
// that we report has does not.
#include <nccl.h>

#include <cstdio>

extern "C" {
#pragma weak ncclAlltoAll
#pragma weak ncclCommWindowRegister
#pragma weak ncclCommWindowDeregister
#pragma weak ncclGetLastError
[[gnu::weak]] ncclResult_t ncclCommGrow(ncclComm_t comm);      // NCCL 2.29
[[gnu::weak]] ncclResult_t ncclPutSignal(const void* buffer);  // NCCL 2.29
}

int main() {
  const bool there = ncclAlltoAll != nullptr && ncclCommWindowRegister != nullptr && ncclCommWindowDeregister != nullptr &&
                     ncclGetLastError != nullptr;
  const bool newer = ncclCommGrow != nullptr || ncclPutSignal != nullptr;
  std::printf("there: %d, newer: %d\n", there, newer);
  ncclComm_t comm = nullptr;
  int in = 7, out = 0;
  if (!there || newer || ncclCommInitAll(&comm, 1, nullptr) != ncclSuccess) return 1;
  if (ncclAlltoAll(&in, &out, 1, ncclInt, comm, nullptr) != ncclSuccess || out != 7) return 1;
  return ncclCommDestroy(comm) == ncclSuccess ? 0 : 1;
}
