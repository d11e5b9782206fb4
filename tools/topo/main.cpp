// SPDX-License-Identifier: Apache-2.0
// shoal-topo: what Shoal sees of this machine.
#include <shoal/shoal.h>

#include <array>
#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  if (argc > 1) {
    const bool help = std::strcmp(argv[1], "-h") == 0 || std::strcmp(argv[1], "--help") == 0;
    std::fprintf(help ? stdout : stderr,
                 help ? "Usage: shoal-topo\nPrints cores and caches, memory and transports of this machine.\n"
                      : "shoal-topo: %s: is no option of this program\n",
                 argv[1]);
    return help ? 0 : 2;
  }
  std::array<char, 16384> text = {};
  if (shoalDescribeMachine(text.data(), text.size()) != ncclSuccess) {
    std::fprintf(stderr, "shoal-topo: %s\n", ncclGetLastError(nullptr));
    return 1;
  }
  std::fputs(text.data(), stdout);
  return 0;
}
