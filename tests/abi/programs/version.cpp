// SPDX-License-Identifier: Apache-2.0
// Prints the version of the NCCL that it got; also a library, which a program may load later.
#include <cstdio>

extern "C" int ncclGetVersion(int* version);

extern "C" [[gnu::visibility("default")]] int print_version() {
  int version = 0;
  if (ncclGetVersion(&version) != 0) return 1;
  std::printf("%d\n", version);
  return 0;
}

int main() { return print_version(); }
