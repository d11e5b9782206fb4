// SPDX-License-Identifier: Apache-2.0
// dlopen_first NCCL USER: loads NCCL for all, then a library that would bring its own.
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (void* const library = dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL); library == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    } else if (void* const print = dlsym(library, "print_version"); print != nullptr) {
      return reinterpret_cast<int (*)()>(print)();
    }
  return 2;
}
